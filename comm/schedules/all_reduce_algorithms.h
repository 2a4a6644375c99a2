// The algorithms of all-reduce by name: one row each, read by backends, options and help of programs, and by tests.
// Example:
//     const std::vector<int> one_host(4, 0);
//     for (const AllReduceAlgorithm& algorithm : all_reduce_algorithms()) {
//       const Schedule schedule = algorithm.make(one_host);
//       check_schedule(schedule, all_reduce_goal(4, schedule.chunks));
//     }
#pragma once

#include "tandem/comm/schedules/algorithms.h"
#include "tandem/comm/schedules/check_schedule.h"

#include <span>
#include <string_view>

namespace tandem::comm {

struct AllReduceAlgorithm {
  std::string_view name;
  std::string_view what;  ///< in a few words
  /// For ranks on these hosts (Place::node), by rank.
  Schedule (*make)(std::span<const int> node_of_rank);
};

std::span<const AllReduceAlgorithm> all_reduce_algorithms();

/// The one of that name. Throws Error, naming those that there are.
const AllReduceAlgorithm& all_reduce_algorithm(std::string_view name);

}  // namespace tandem::comm
