#pragma once

#include "tandem/comm/backends/backend.h"
#include "tandem/comm/doctor/checked_messages.h"
#include "tandem/comm/doctor/rank_status.h"

namespace tandem::comm {

/// Throws the same AgreedError on all ranks where a collective that this rank is about to begin, which it shows as
/// `mine`, does not fit the others'. Collective: an exchange of some numbers, for all_to_all of two more for each rank,
/// while `messages` move on. `backend` works on host memory.
void compare_operations(Backend& backend, const Collective& collective, const OperationView& mine,
                        CheckedMessages& messages);

}  // namespace tandem::comm
