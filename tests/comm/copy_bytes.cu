// Copies by address on a CUDA device.
#include "tests/comm/copy_bytes.h"

#include "tandem/core/cuda/check.h"

#include <cuda_runtime_api.h>

namespace tandem::test::cuda {

void copy_bytes(const Stream& stream, void* to, const void* from, std::int64_t bytes) {
  TANDEM_CHECK_CUDA(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDeviceToDevice,
                                    static_cast<cudaStream_t>(stream.native())));
}

}  // namespace tandem::test::cuda
