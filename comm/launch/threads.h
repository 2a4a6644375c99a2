// How many threads each rank should use, so that the ranks of one host do not fight for its cores.
// Example:
//     #include "tandem/comm/launch/mpi_environment.h"
//     #include "tandem/core/parallel.h"
//     undo_default_binding();
//     MpiEnvironment environment;
//     const auto group = make_process_group("auto", environment);
//     set_num_threads(default_threads(*group));
#pragma once

#include "tandem/comm/process_group.h"

#include <span>
#include <string>
#include <vector>

namespace tandem::comm {

/// Cores, by number, that a process may run on. Hardware threads of one core count once, under the lowest number.
using CoreSet = std::vector<int>;

/// The cores this process may run on; empty where the system does not say.
CoreSet allowed_cores();

/// Threads for the first of several processes: a core that k of them may use counts 1/k. At least 1.
int fair_share(const CoreSet& mine, std::span<const CoreSet> all);

/// OMP_NUM_THREADS where it is set (its first number), else this rank's fair share of its host's cores: cores / ranks
/// where nothing is bound, the bound cores otherwise. Collective.
int default_threads(ProcessGroup& group);

/// Open MPI binds each of one or two ranks to a single core unless told otherwise, which leaves a rank with several
/// threads one core for all of them. Where nobody asked for that (see is_default_binding), lets this process run
/// wherever its launcher may. Must run before threads are started. True if it changed anything.
bool undo_default_binding();

}  // namespace tandem::comm
