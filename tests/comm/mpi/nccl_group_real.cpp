// The group of GPUs.
#include "tandem/comm/launch/gpu_sharing.h"
#include "tests/comm/mpi/mpi_test.h"
#include "tests/comm/mpi/nccl_group.h"
#include "tests/support/cuda_device.h"
#include "tests/support/skip.h"

namespace tandem::test {

std::unique_ptr<comm::ProcessGroup> make_nccl_group(Device& device) {
  if (!has_gpu()) return nullptr;
  const auto mpi = comm::make_process_group("mpi", environment());
  device = comm::share_out_gpus(*mpi, kGpu);
  if (mpi->local_size() <= cuda_device_count()) return comm::make_process_group("nccl", environment(), device);
  skip_test("ranks share a GPU");
  return nullptr;
}

}  // namespace tandem::test
