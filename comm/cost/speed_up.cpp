// Buckets that follow each other beside a backward pass.
#include "tandem/comm/cost/speed_up.h"

#include "tandem/comm/cost/choose_algorithms.h"
#include "tandem/comm/cost/predict.h"
#include "tandem/core/error.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace tandem::comm {

namespace {

/// Seconds of all-reduces of `least` to `most` bytes, each by its fastest algorithm; sizes between those that are
/// followed are interpolated.
CostCurve all_reduce_curve(std::span<const int> nodes, std::int64_t least, std::int64_t most,
                           const MessageCosts& costs) {
  constexpr std::int64_t kFactor = 4;
  constexpr double kMostSeconds = 1e12;  // of a CostCurve
  const auto candidates = candidate_algorithms(nodes);
  std::vector<CostPoint> points;
  for (std::int64_t bytes = std::max<std::int64_t>(least, 1); points.empty() || points.back().bytes < most;
       bytes *= kFactor) {
    double seconds = kMostSeconds;
    for (const auto& [name, schedule] : candidates)
      seconds = std::min(seconds, predicted_seconds(schedule, nodes, bytes, costs));
    points.push_back({bytes, points.empty() ? seconds : std::max(seconds, points.back().seconds)});
  }
  return CostCurve(std::move(points));
}

}  // namespace

SpeedUp predict_speed_up(const StepCosts& step, std::span<const int> node_of_rank, const MessageCosts& costs) {
  require(step.seconds >= 0.0 && step.window >= 0.0 && step.window <= step.seconds,
          "predict_speed_up: a step of {} s with a window of {} s", step.seconds, step.window);
  const bool has_sizes = std::ranges::all_of(step.bucket_bytes, [](std::int64_t bytes) { return bytes >= 0; });
  require(has_sizes, "predict_speed_up: a bucket of less than 0 bytes");
  SpeedUp result{.ranks = static_cast<int>(node_of_rank.size())};
  result.factor = result.ranks;
  if (node_of_rank.size() < 2 || step.bucket_bytes.empty()) return result;
  const auto [least, most] = std::ranges::minmax(step.bucket_bytes);
  const CostCurve curve = all_reduce_curve(node_of_rank, least, most, costs);
  const double latency = all_reduce_curve(node_of_rank, 1, 1, costs).at(1);
  const double behind_first =
      std::accumulate(step.bucket_bytes.begin() + 1, step.bucket_bytes.end(), 0.0, std::plus<double>());
  double filled = 0.0, sent = 0.0;  // seconds from when the first bucket is full
  for (std::size_t i = 0; i < step.bucket_bytes.size(); ++i) {
    const std::int64_t bytes = step.bucket_bytes[i];
    if (i > 0 && behind_first > 0.0) filled += step.window * static_cast<double>(bytes) / behind_first;
    const double transfer = std::max(0.0, curve.at(bytes) - latency);
    result.exchange_seconds += transfer;
    sent = std::max(sent, filled) + transfer;
  }
  result.exchange_seconds += latency;
  result.waited_seconds = std::max(0.0, sent + latency - step.window);
  if (step.seconds > 0.0) result.factor *= step.seconds / (step.seconds + result.waited_seconds);
  return result;
}

std::vector<SpeedUp> predict_speed_ups(const StepCosts& step, int most, const MessageCosts& costs) {
  std::vector<SpeedUp> all;
  for (int ranks = 1; ranks <= most; ranks *= 2) {
    std::vector<int> hosts(static_cast<std::size_t>(ranks));
    std::iota(hosts.begin(), hosts.end(), 0);
    all.push_back(predict_speed_up(step, hosts, costs));
  }
  return all;
}

}  // namespace tandem::comm
