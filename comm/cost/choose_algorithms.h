// Which algorithm all-reduces should go by, from the predicted times of all of them.
// Example:
//     const std::vector<int> one_host(4, 0);
//     const std::vector<AlgorithmChoice> choices = choose_algorithms(one_host, usual_message_costs());
#pragma once

#include "tandem/comm/cost/algorithm_choice.h"
#include "tandem/comm/cost/message_costs.h"
#include "tandem/comm/schedules/algorithms.h"
#include "tandem/comm/schedules/segment_options.h"

#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace tandem::comm {

/// The algorithms that are chosen from: "direct" is for 8 ranks at most, and "two-level" where a host has several.
std::vector<std::pair<std::string_view, Schedule>> candidate_algorithms(std::span<const int> node_of_rank);

/// The algorithm with the least predicted time, at each size, where it is 10 % less than by the one before; the first
/// choice is from 0 bytes on.
std::vector<AlgorithmChoice> choose_algorithms(std::span<const int> node_of_rank, const MessageCosts& costs,
                                               const SegmentOptions& segments = {});

}  // namespace tandem::comm
