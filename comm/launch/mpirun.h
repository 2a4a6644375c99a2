// What Open MPI's mpirun, version 4 or 5, was asked for. Version 4 (its run time is called ORTE) passes that to its
// ranks as MCA parameters. Version 5 (PRRTE) passes nothing: there it is read from how the process that started this
// one was called. On another host than mpirun's that is a daemon, whose call lacks mpirun's options.
#pragma once

#include "tandem/core/environment.h"

#include <string>
#include <vector>

namespace tandem::comm {

/// How a process was called: the words of its command line, and its environment as NAME=VALUE.
struct ProcessCall {
  std::vector<std::string> words;
  std::vector<std::string> environment;
};

/// Of the process that started this one; empty where the system does not say.
ProcessCall launcher_call();

/// Whether mpirun started this rank as one of at most two, which it binds to a core each unless told otherwise, and
/// neither its user nor its settings said anything about cores. False under other launchers: MPICH's binds nothing
/// unless told, and what Intel's and Slurm's give a rank is its share of the host.
bool is_default_binding(const EnvironmentLookup& lookup, const ProcessCall& launcher);

/// Whether mpirun started this rank and ends all ranks as soon as one leaves with an exit code other than zero: so it
/// does unless told otherwise. False where that cannot be seen.
bool ends_all_ranks_on_failure(const EnvironmentLookup& lookup, const ProcessCall& launcher);

}  // namespace tandem::comm
