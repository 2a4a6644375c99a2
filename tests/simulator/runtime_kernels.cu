// Two small kernels for tests of the runtime.
#include "tests/simulator/runtime_kernels.h"

#include "core/cuda/launch.h"

namespace tandem::test {
namespace {

__global__ void fill(int* data, int count, int value) {
  const int i = static_cast<int>(threadIdx.x);
  if (i < count) data[i] = value;
}

__global__ void add(const int* in, int* out, int count, int value) {
  const int i = static_cast<int>(threadIdx.x);
  if (i < count) out[i] = in[i] + value;
}

__global__ void nothing() {}

}  // namespace

void launch_fill(int* data, int count, int value, cudaStream_t stream) { launch(fill, {1, 64}, stream, data, count, value); }

void launch_add(const int* in, int* out, int count, int value, cudaStream_t stream) {
  launch(add, {1, 64}, stream, in, out, count, value);
}

cudaError_t launch_with_shared(unsigned bytes) {
  simulator::launch(nothing, 1, 1, bytes, nullptr, std::source_location::current());
  return cudaGetLastError();
}

}  // namespace tandem::test
