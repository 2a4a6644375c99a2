// What every collective must do, checked on one rank of any group: by threads here, by processes under mpirun.
#pragma once

#include "tandem/comm/process_group.h"
#include "tandem/core/out.h"

#include <cstdint>
#include <string>

namespace tandem::test {

/// Runs all collectives in all forms, dtypes, operations and from all roots on tensors of `count` elements of a device.
/// "" where all elements are right on this rank, else what is not. Collective.
std::string fault_of_all_collectives(comm::ProcessGroup& group, std::int64_t count, Device device = {});

/// Those of rows, of which a rank may have many for one other and none for the rest.
std::string fault_of_uneven_rows(comm::ProcessGroup& group, std::int64_t count, Device device = {});

/// Those that move elements, f32 alone, into tensors beside which nothing is to be written.
std::string fault_of_moves(comm::ProcessGroup& group, std::int64_t count);

/// These and reductions, in tensors of several dtypes that begin one element into their memory.
std::string fault_of_odd_places(comm::ProcessGroup& group, std::int64_t count, Device device = {});

/// Groups of some ranks, which are at work at the same time as others.
std::string fault_of_split(comm::ProcessGroup& group, Device device = {});

}  // namespace tandem::test
