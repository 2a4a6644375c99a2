// Which GPU each rank of a host computes on.
#pragma once

#include "tandem/comm/process_group.h"

#include <span>
#include <string>
#include <vector>

namespace tandem::comm {

/// What one rank sees of its host's GPUs: their UUIDs by device index. Launchers may show every rank others, or the
/// same in another order (CUDA_VISIBLE_DEVICES).
struct VisibleGpus {
  int node = 0;                    ///< number of the rank's host (Place::node)
  std::vector<std::string> uuids;  ///< by device index
};

/// For each rank, by rank, the index that it should take among the GPUs it sees: two ranks share one only where there
/// are too few. Ranks that all see the same GPUs take them in turn. -1 for a rank that sees none.
std::vector<int> share_out_gpus(std::span<const VisibleGpus> ranks);

/// `wanted` with the index that share_out_gpus() gives this rank; unchanged for the CPU, and for a rank that sees no
/// GPU. Collective. Example:
///     #include "tandem/comm/launch/mpi_environment.h"
///     #include "tandem/core/parse_device.h"
///     MpiEnvironment environment;
///     const auto group = make_process_group("auto", environment);
///     const Device device = share_out_gpus(*group, parse_device("auto"));
Device share_out_gpus(ProcessGroup& group, Device wanted);

}  // namespace tandem::comm
