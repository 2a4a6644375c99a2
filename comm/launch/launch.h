// How this process was started: alone, or as one of several ranks, and by which launcher.
// Example:
//     const Launch launch = detect_launch(environment_variable);
//     if (launch.size > 1) std::printf("rank %d, started by %s\n", launch.rank, launch.launcher.c_str());
#pragma once

#include "tandem/core/environment.h"

#include <string>

namespace tandem::comm {

/// What the environment variables of launchers say.
struct Launch {
  std::string launcher;      ///< "mpirun", "srun", "torchrun"; empty: started alone
  int size = 1;              ///< ranks that the launcher started
  int rank = 0;              ///< this one's number
  bool reaches_mpi = false;  ///< the launcher told MPI's start-up interface (PMIx or PMI) about it
  int local_rank = 0;        ///< its number among those of its host; 0 where the launcher does not say
  bool has_hosts = false;    ///< whether the launcher says that the ranks are on several hosts
};

/// Reads the variables by `lookup`: of mpirun, srun and torchrun. The innermost launcher counts.
Launch detect_launch(const EnvironmentLookup& lookup);

/// Throws Error where the ranks could not find each other and would train independently: started as several processes
/// by a launcher that MPI knows nothing of, or in a build without MPI.
void check_launch(const Launch& launch, bool built_with_mpi);

/// Throws Error unless MPI's world has the size that the launcher announced.
void check_world_size(const Launch& launch, int world_size, const std::string& mpi_library);

}  // namespace tandem::comm
