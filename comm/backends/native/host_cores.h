// Whether ranks have cores of their own.
#pragma once

#include "tandem/comm/backends/backend.h"

#include <span>

namespace tandem::comm {

/// How many cores the ranks of a host share, where there are more ranks than cores that they may run on; the least of
/// several such hosts, 0 where there is none. Collective; the same on all ranks.
int shared_cores(Backend& group, std::span<const int> node_of_rank);

}  // namespace tandem::comm
