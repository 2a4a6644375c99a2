// The group of simulated GPUs.
#include "tests/comm/mpi/mpi_test.h"
#include "tests/support/cuda_device.h"
#include "tests/train/mpi/host_nccl.h"
#include "tests/train/mpi/nccl_group.h"

namespace tandem::test {

std::unique_ptr<comm::ProcessGroup> make_nccl_group(Device& device) {
  if (!has_gpu()) return nullptr;
  device = kGpu;
  auto communicator = std::make_unique<HostNccl>(comm::make_process_group("mpi", environment()), device);
  auto others = std::make_unique<Punctual>(comm::detail::make_mpi_backend(), device);
  return std::make_unique<comm::ProcessGroup>(
      comm::make_nccl_backend(std::move(others), std::move(communicator), device, comm::NcclOptions{}));
}

}  // namespace tandem::test
