#pragma once

#include "tandem/comm/backends/backend.h"
#include "tandem/comm/doctor/checked_messages.h"
#include "tandem/comm/doctor/rank_status.h"

namespace tandem::comm {

/// Throws the same AgreedError on all ranks where `mine`, a collective that this rank is about to begin, does not fit
/// the others'. Collective: an exchange of some numbers, while `messages` move on. `backend` works on host memory.
void compare_operations(Backend& backend, const OperationView& mine, CheckedMessages& messages);

}  // namespace tandem::comm
