// Straight lines between points.
#include "tandem/comm/cost/message_costs.h"

#include "tandem/core/error.h"
#include "tandem/core/number_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace tandem::comm {

namespace {

/// Of what is longer, sums over many messages would not be numbers.
constexpr double kMostSeconds = 1e12;

bool is_time(double seconds) { return seconds >= 0.0 && seconds <= kMostSeconds; }

constexpr CostCurve MessageCosts::* kCurves[] = {&MessageCosts::within_host, &MessageCosts::between_hosts,
                                                 &MessageCosts::combine};

}  // namespace

CostCurve::CostCurve(std::vector<CostPoint> points) : points_(std::move(points)) {
  for (std::size_t i = 0; i < points_.size(); ++i) {
    const auto& [bytes, seconds] = points_[i];
    require(bytes >= 0 && is_time(seconds), "cost curve: {} bytes in {} s", bytes, seconds);
    if (i == 0) continue;
    const CostPoint& before = points_[i - 1];
    require(bytes > before.bytes && seconds >= before.seconds,
            "cost curve: {} bytes in {} s behind {} bytes in {} s: both must ascend", bytes, seconds, before.bytes,
            before.seconds);
  }
}

CostCurve CostCurve::line(double latency, double bytes_per_second) {
  constexpr std::int64_t kFar = std::int64_t{1} << 30;
  require(bytes_per_second > 0.0, "cost curve: {} bytes per second", bytes_per_second);
  return CostCurve({{0, latency}, {kFar, latency + static_cast<double>(kFar) / bytes_per_second}});
}

double CostCurve::at(std::int64_t bytes) const {
  if (points_.empty()) return 0.0;
  if (points_.size() == 1 || bytes <= points_.front().bytes) return points_.front().seconds;
  const auto behind = std::ranges::lower_bound(points_, bytes, {}, &CostPoint::bytes);
  const CostPoint& b = behind == points_.end() ? points_.back() : *behind;
  const CostPoint& a = *(&b - 1);
  return a.seconds +
         (b.seconds - a.seconds) * static_cast<double>(bytes - a.bytes) / static_cast<double>(b.bytes - a.bytes);
}

void check_costs(const MessageCosts& costs) {
  require(is_time(costs.start), "message costs: a collective starts in {} s", costs.start);
  require(is_time(costs.overhead), "message costs: a message keeps a rank busy for {} s", costs.overhead);
  require(costs.shared_cores >= 0, "message costs: ranks share {} cores", costs.shared_cores);
  for (const Correction& correction : costs.corrections) check_correction(correction);
}

MessageCosts usual_message_costs() {
  return {.start = 1e-6,
          .overhead = 1e-6,
          .within_host = CostCurve::line(2e-6, 4e9),
          .between_hosts = CostCurve::line(25e-6, 1.1e9),
          .combine = CostCurve::line(0.0, 8e9)};
}

std::string to_text(const MessageCosts& costs) {
  std::string text = fmt::format("{} {} {}", costs.start, costs.overhead, costs.shared_cores);
  for (const auto curve : kCurves) {
    text += fmt::format(" {}", (costs.*curve).points().size());
    for (const CostPoint& point : (costs.*curve).points()) text += fmt::format(" {} {}", point.bytes, point.seconds);
  }
  text += fmt::format(" {}", costs.corrections.size());
  for (const Correction& correction : costs.corrections) {
    text +=
        fmt::format(" {} {} {} {}", correction.algorithm, correction.ranks, correction.hosts, correction.points.size());
    for (const auto& [bytes, factor] : correction.points) text += fmt::format(" {} {}", bytes, factor);
  }
  return text;
}

MessageCosts message_costs_from_text(std::string_view text) {
  std::size_t at = 0;
  const auto next_word = [&] {
    const std::size_t begin = at, end = std::min(text.find(' ', at), text.size());
    at = std::min(end + 1, text.size());
    return text.substr(begin, end - begin);
  };
  const auto read = [&]<typename T>(T& number) {
    const std::optional<T> value = parse_number<T>(next_word());
    require(value.has_value(), "'{}' are no message costs", text);
    number = *value;
  };
  const auto read_count = [&] {
    std::size_t count = 0;
    read(count);
    require(count <= text.size(), "'{}' are no message costs", text);
    return count;
  };
  MessageCosts costs;
  read(costs.start);
  read(costs.overhead);
  read(costs.shared_cores);
  for (const auto curve : kCurves) {
    std::vector<CostPoint> points(read_count());
    for (CostPoint& point : points) {
      read(point.bytes);
      read(point.seconds);
    }
    costs.*curve = CostCurve(std::move(points));
  }
  costs.corrections.resize(read_count());
  for (Correction& correction : costs.corrections) {
    correction.algorithm = next_word();
    read(correction.ranks);
    read(correction.hosts);
    correction.points.resize(read_count());
    for (CorrectionPoint& point : correction.points) {
      read(point.bytes);
      read(point.factor);
    }
  }
  require(at == text.size(), "'{}' are no message costs", text);
  check_costs(costs);
  return costs;
}

}  // namespace tandem::comm
