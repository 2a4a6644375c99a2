// How long a schedule takes, from what its messages cost.
// Example:
//     const std::vector<int> one_host(4, 0);
//     const double seconds = predicted_seconds(ring_all_reduce(4), one_host, 1 << 20, usual_message_costs());
#pragma once

#include "tandem/comm/cost/message_costs.h"
#include "tandem/comm/schedules/algorithms.h"
#include "tandem/comm/schedules/segment_options.h"

#include <cstdint>
#include <span>

namespace tandem::comm {

/// Seconds from the common beginning to the end of the last rank, where `bytes` are cut into the schedule's chunks, and
/// these into segments. The schedule is followed message by message, as ScheduleRun carries it out: a rank does one
/// thing at a time, and of a pair of ranks SegmentOptions::messages_at_once() are on their way. Within a host sending
/// takes half of what an exchange costs, receiving the other half. Between hosts, only its overhead does; the bytes go
/// by the network meanwhile, in which a rank has a way out and one in, each for one message at a time, in the order in
/// which they leave. Rounds take turns (comm/schedules/turns.h). Ranks have a core each, or share those of their host
/// (MessageCosts::shared_cores). `node_of_rank` has a number for each rank, alike for ranks of a host. Where
/// MessageCosts::corrections has one of the schedule's name for as many ranks and hosts, times are multiplied by that.
double predicted_seconds(const Schedule& schedule, std::span<const int> node_of_rank, std::int64_t bytes,
                         const MessageCosts& costs, const SegmentOptions& segments = {});

}  // namespace tandem::comm
