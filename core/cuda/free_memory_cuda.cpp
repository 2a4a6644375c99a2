// Free memory through the CUDA runtime.
#include "tandem/core/cuda/check.h"
#include "tandem/core/cuda/free_memory.h"

#include <cuda_runtime_api.h>

#include <cstddef>

namespace tandem::cuda {

std::int64_t free_memory(int device) {
  TANDEM_CHECK_CUDA(cudaSetDevice(device));
  std::size_t free = 0, total = 0;
  TANDEM_CHECK_CUDA(cudaMemGetInfo(&free, &total));
  return static_cast<std::int64_t>(free);
}

}  // namespace tandem::cuda
