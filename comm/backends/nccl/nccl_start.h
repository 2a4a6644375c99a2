// From the ranks of a run to a group over NCCL, or to the reason why there can be none.
#pragma once

#include "tandem/comm/process_group.h"

namespace tandem::comm {

/// What this build lacks for NCCL, in one line; empty where NCCL is there.
std::string_view missing_nccl();

struct NcclStart {
  std::unique_ptr<Backend> backend;  // null if there is an obstacle
  std::string obstacle;              // in one line, the same on all ranks
  bool has_gpus = false;             // any rank computes on one
};

/// `device` is where this rank computes; `group` and `others` are over MPI, and `others` becomes part of the backend.
/// Throws nothing but what `group` does: errors are obstacles, and so is a build without NCCL. Collective.
NcclStart start_nccl(ProcessGroup& group, std::unique_ptr<Backend> others, Device device);

}  // namespace tandem::comm
