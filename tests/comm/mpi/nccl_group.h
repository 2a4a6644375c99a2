// A group of the backend nccl for tests, also of simulated GPUs.
#pragma once

#include "tandem/comm/process_group.h"

#include <memory>

namespace tandem::test {

/// Such a group of all ranks; gives this rank's GPU. Null, which is said, where there cannot be one: without a GPU, or
/// where ranks share one. Simulated GPUs are several in one sense: each process has its own.
std::unique_ptr<comm::ProcessGroup> make_nccl_group(Device& device);

}  // namespace tandem::test
