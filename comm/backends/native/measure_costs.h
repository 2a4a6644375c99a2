// What messages cost between the ranks of a group, measured.
#pragma once

#include "tandem/comm/backends/backend.h"
#include "tandem/comm/cost/message_costs.h"
#include "tandem/comm/schedules/segment_options.h"
#include "tandem/comm/transports/transport.h"

#include <span>

namespace tandem::comm {

/// Exchanges messages of 4 bytes to 32 MiB with neighbours on the same host, then on another, and combines as many
/// bytes, on all ranks at once; then, where each rank has a core of its own, reduces 1 KiB to 64 MiB by each algorithm
/// there is to choose from. Of each, the median of several turns on the slowest rank. Takes two seconds for two
/// ranks, more for many, and up to 256 MiB of data on a host. Collective; nothing else may be under way. The same on
/// all ranks. `group` tells times; `transport`, which joins its ranks, is what is measured, with messages of tag `tag`.
/// What is not there, as another host, has the usual costs.
MessageCosts measure_message_costs(Backend& group, Transport& transport, int tag, std::span<const int> node_of_rank,
                                   const SegmentOptions& segments);

}  // namespace tandem::comm
