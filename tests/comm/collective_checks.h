// What every collective must do, checked on one rank of any group: by threads here, by processes under mpirun.
#pragma once

#include "tandem/comm/process_group.h"
#include "tandem/core/out.h"

#include <cstdint>
#include <string>

namespace tandem::test {

/// Runs all collectives in all forms, dtypes, operations and from all roots on tensors of `count` elements. "" where
/// all elements are right on this rank, else what is not. Collective.
std::string fault_of_all_collectives(comm::ProcessGroup& group, std::int64_t count);

/// Those that move elements, f32 alone, into tensors beside which nothing is to be written.
std::string fault_of_moves(comm::ProcessGroup& group, std::int64_t count);

/// The same of groups of some ranks, which are at work at the same time as others.
std::string fault_of_split(comm::ProcessGroup& group);

}  // namespace tandem::test
