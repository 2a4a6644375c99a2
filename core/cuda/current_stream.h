// Where a .cu file launches its kernels.
#pragma once

#include "tandem/core/tensor.h"

#include <cuda_runtime_api.h>

namespace tandem::cuda {

/// Makes `device` the one that this thread's CUDA calls are for, and returns this thread's current stream of it. Throws
/// Error unless it is a CUDA device that is there.
cudaStream_t current_stream(Device device);

/// The same for the device that `tensor` is on.
inline cudaStream_t current_stream(const Tensor& tensor) { return cuda::current_stream(tensor.device()); }

}  // namespace tandem::cuda
