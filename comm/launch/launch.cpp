// Launchers and their environment variables.
#include "tandem/comm/launch/launch.h"

#include "tandem/core/error.h"
#include "tandem/core/number_text.h"

#include <optional>

namespace tandem::comm {

namespace {

std::optional<int> number(const EnvironmentLookup& lookup, const char* name) {
  const char* const text = lookup(name);
  return text == nullptr ? std::nullopt : parse_number<int>(text);
}

}  // namespace

Launch detect_launch(const EnvironmentLookup& lookup) {
  // Innermost first: mpirun inside a Slurm allocation sees Slurm's variables as well.
  if (const auto size = number(lookup, "OMPI_COMM_WORLD_SIZE")) {
    return {"mpirun",
            *size,
            number(lookup, "OMPI_COMM_WORLD_RANK").value_or(0),
            true,
            number(lookup, "OMPI_COMM_WORLD_LOCAL_RANK").value_or(0),
            number(lookup, "OMPI_COMM_WORLD_LOCAL_SIZE").value_or(*size) < *size};
  }
  // Slurm sets SLURM_NTASKS in batch scripts too, where nothing was launched yet; a step has an id.
  const bool in_step = lookup("SLURM_STEP_ID") != nullptr && lookup("SLURM_PROCID") != nullptr;
  const auto pmi_size = number(lookup, "PMI_SIZE");
  const int local_rank = number(lookup, in_step ? "SLURM_LOCALID" : "MPI_LOCALRANKID").value_or(0);
  const bool has_hosts = in_step && number(lookup, "SLURM_STEP_NUM_NODES").value_or(1) > 1;
  if (pmi_size)
    return {
        in_step ? "srun" : "mpirun", *pmi_size, number(lookup, "PMI_RANK").value_or(0), true, local_rank, has_hosts};
  if (in_step) {
    const auto tasks = number(lookup, "SLURM_STEP_NUM_TASKS");
    const int size = tasks ? *tasks : number(lookup, "SLURM_NTASKS").value_or(1);
    return {"srun",     size,     number(lookup, "SLURM_PROCID").value_or(0), lookup("PMIX_RANK") != nullptr,
            local_rank, has_hosts};
  }
  const auto world = number(lookup, "WORLD_SIZE"), rank = number(lookup, "RANK");
  if (world && rank && lookup("LOCAL_RANK") != nullptr) return {"torchrun", *world, *rank, false};
  return {};
}

void check_launch(const Launch& launch, bool built_with_mpi) {
  if (launch.size <= 1) return;
  require(launch.launcher != "torchrun",
          "started by torchrun as {} processes, which share no process group here: use mpirun -np {} or srun -n {}",
          launch.size, launch.size, launch.size);
  require(built_with_mpi,
          "started by {} as {} processes, but this program was built without MPI: install libopenmpi-dev and "
          "openmpi-bin and configure again with -DTANDEM_MPI=ON, or start one process",
          launch.launcher, launch.size);
  require(launch.reaches_mpi,
          "started by {} as {} tasks without PMI, so that they cannot find each other: use srun --mpi=pmix (or "
          "--mpi=pmi2 with MPICH; srun --mpi=list shows what there is), or mpirun inside the allocation",
          launch.launcher, launch.size);
}

void check_world_size(const Launch& launch, int world_size, const std::string& mpi_library) {
  require(launch.launcher.empty() || launch.size == world_size,
          "started by {} as {} processes, but MPI ({}) sees {}: use the launcher that belongs to this MPI library",
          launch.launcher, launch.size, mpi_library, world_size);
}

}  // namespace tandem::comm
