// Candidates, and the one with the least predicted time.
#include "tandem/comm/cost/choose_algorithms.h"

#include "tandem/comm/cost/predict.h"
#include "tandem/comm/schedules/all_reduce_algorithms.h"

#include <limits>
#include <set>

namespace tandem::comm {

std::vector<std::pair<std::string_view, Schedule>> candidate_algorithms(std::span<const int> node_of_rank) {
  // Messages of many ranks that meet at one hold each other up, which predictions do not know. From where on was not
  // measured: no network was at hand.
  constexpr std::size_t kMostDirect = 8;
  const std::set<int> hosts(node_of_rank.begin(), node_of_rank.end());
  std::vector<std::pair<std::string_view, Schedule>> candidates;
  for (const AllReduceAlgorithm& algorithm : all_reduce_algorithms()) {
    if (algorithm.name == "direct" && node_of_rank.size() > kMostDirect) continue;
    if (algorithm.name == "two-level" && hosts.size() == node_of_rank.size()) continue;  // a ring of hosts: the ring
    candidates.emplace_back(algorithm.name, algorithm.make(node_of_rank));
  }
  return candidates;
}

std::vector<AlgorithmChoice> choose_algorithms(std::span<const int> node_of_rank, const MessageCosts& costs,
                                               const SegmentOptions& segments) {
  constexpr std::int64_t kSmallest = 4, kLargest = std::int64_t{1} << 24;  // larger data go as those do
  constexpr double kGain = 0.10;                                           // for less, no other is taken
  constexpr std::size_t kManyRanks = 32;                                   // which make predictions slow
  const std::int64_t factor = node_of_rank.size() > kManyRanks ? 4 : 2;
  std::vector<AlgorithmChoice> choices;
  const auto candidates = candidate_algorithms(node_of_rank);
  for (std::int64_t bytes = kSmallest; bytes <= kLargest; bytes *= factor) {
    AlgorithmChoice best{choices.empty() ? 0 : bytes / 2 + bytes / (2 * factor), {}};  // from between two sizes on
    double least = std::numeric_limits<double>::infinity(), as_before = least;
    for (const auto& [name, schedule] : candidates) {
      const double seconds = predicted_seconds(schedule, node_of_rank, bytes, costs, segments);
      if (!choices.empty() && choices.back().algorithm == name) as_before = seconds;
      if (seconds >= least) continue;
      least = seconds;
      best.algorithm = name;
    }
    if (least < (1.0 - kGain) * as_before) choices.push_back(best);
  }
  return choices;
}

}  // namespace tandem::comm
