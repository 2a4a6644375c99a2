// Two small kernels for tests of the runtime.
#pragma once

#include <cuda_runtime_api.h>

namespace tandem::test {

void launch_fill(int* data, int count, int value, cudaStream_t stream);
void launch_add(const int* in, int* out, int count, int value, cudaStream_t stream);
/// One thread, `bytes` of dynamic shared memory; what the launch gives.
cudaError_t launch_with_shared(unsigned bytes);

}  // namespace tandem::test
