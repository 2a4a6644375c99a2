// Small kernels for tests of the runtime.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <span>

namespace tandem::test {

void launch_fill(int* data, int count, int value, cudaStream_t stream);
void launch_add(const int* in, int* out, int count, int value, cudaStream_t stream);
/// There are gaps between its members and behind them.
struct Padded {
  char first;
  double second;
  short third;
};
void launch_padded(int* data, const Padded& values, cudaStream_t stream);
/// Counts its 64 threads; of these `elsewhere`, if it is one, waits in another barrier, which is a fault.
void launch_count_threads(int* count, int elsewhere);
/// Copies to and from a __constant__ array of four, of which the kernel reads all.
cudaError_t set_coefficients(const int* values, std::size_t count, std::size_t first = 0);
cudaError_t get_coefficients(int* values, std::size_t count, std::size_t first = 0);
void launch_read_coefficients(int* out);
/// One thread, `bytes` of dynamic shared memory; what the launch gives.
cudaError_t launch_with_shared(unsigned bytes);
/// Counts memory of the host up until `stop`: instrumented code of the host, as all code of .cu files. What it did.
int count_on_host(std::span<int> memory, const std::atomic<bool>& stop, std::atomic<bool>& begun);

}  // namespace tandem::test
