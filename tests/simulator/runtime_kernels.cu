// Small kernels for tests of the runtime.
#include "tests/simulator/runtime_kernels.h"

#include "tandem/core/cuda/launch.h"

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

__global__ void store_sum(int* data, Padded values) { data[threadIdx.x] = values.first + values.third; }

__constant__ int coefficients[4];

__global__ void read_coefficients(int* out) { out[threadIdx.x] = coefficients[threadIdx.x]; }

__global__ void count_threads(int* count, int elsewhere) {
  if (static_cast<int>(threadIdx.x) == elsewhere) __syncthreads();
  const int all = __syncthreads_count(1);
  if (threadIdx.x == 0) *count = all;
}

__global__ void nothing() {}

}  // namespace

void launch_fill(int* data, int count, int value, cudaStream_t stream) {
  launch(fill, {1, 64}, stream, data, count, value);
}

void launch_add(const int* in, int* out, int count, int value, cudaStream_t stream) {
  launch(add, {1, 64}, stream, in, out, count, value);
}

void launch_padded(int* data, const Padded& values, cudaStream_t stream) {
  launch(store_sum, {1, 64}, stream, data, values);
}

void launch_count_threads(int* count, int elsewhere) { launch(count_threads, {1, 64}, nullptr, count, elsewhere); }

cudaError_t set_coefficients(const int* values, std::size_t count, std::size_t first) {
  return cudaMemcpyToSymbol(coefficients, values, count * sizeof(int), first * sizeof(int));
}

cudaError_t get_coefficients(int* values, std::size_t count, std::size_t first) {
  return cudaMemcpyFromSymbol(values, coefficients, count * sizeof(int), first * sizeof(int));
}

void launch_read_coefficients(int* out) { launch(read_coefficients, {1, 4}, nullptr, out); }

cudaError_t launch_with_shared(unsigned bytes) {
  simulator::launch(nothing, 1, 1, bytes, nullptr, std::source_location::current());
  return cudaGetLastError();
}

int count_on_host(std::span<int> memory, const std::atomic<bool>& stop, std::atomic<bool>& begun) {
  int rounds = 0;
  while (!stop) {
    for (int& number : memory) ++number;
    ++rounds;
    begun = true;
  }
  return rounds;
}

}  // namespace tandem::test
