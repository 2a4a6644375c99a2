#pragma once

#include "tandem/comm/backends/backend.h"
#include "tandem/comm/doctor/rank_status.h"

namespace tandem::comm {

/// Throws the same AgreedError on all ranks where `mine`, a collective that this rank is about to begin, does not fit
/// the others'. Collective: an exchange of some numbers. `backend` works on host memory.
void compare_operations(Backend& backend, const OperationView& mine);

}  // namespace tandem::comm
