// How fast the simulator is: switches between threads, checked accesses and tensor-core tiles per second.
#include "tandem/core/cuda/launch.h"
#include "tandem/kernels/device/atoms.h"
#include "tandem/kernels/device/reduce.h"
#include "tandem/simulator/engine.h"
#include "tests/simulator/device_buffer.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <functional>

namespace tandem::test {
namespace {

constexpr int kBarriers = 200;

__global__ void barriers() {
  for (int i = 0; i < kBarriers; ++i) __syncthreads();
}

__global__ void warp_sums(float* out, int repeats) {
  float value = static_cast<float>(threadIdx.x);
  for (int i = 0; i < repeats; ++i) value = device::warp_sum(value) * 0.03125f;
  out[blockIdx.x * blockDim.x + threadIdx.x] = value;
}

__global__ void accesses(const float* in, float* out, int repeats) {
  TANDEM_SHARED(float, tile, [256]);
  const int t = static_cast<int>(threadIdx.x);
  float sum = 0.0f;
  for (int i = 0; i < repeats; ++i) {
    tile[t] = in[(blockIdx.x * repeats + static_cast<unsigned>(i)) * 256 + threadIdx.x];
    __syncthreads();
    sum += tile[(t + 1) % 256] + tile[(t + 2) % 256];
    __syncthreads();
  }
  out[blockIdx.x * 256 + threadIdx.x] = sum;
}

/// Every word is read by all warps.
__global__ void broadcasts(const float* in, float* out, int repeats) {
  TANDEM_SHARED(float, tile, [32]);
  const int t = static_cast<int>(threadIdx.x);
  float sum = 0.0f;
  for (int i = 0; i < repeats; ++i) {
    if (t < 32) tile[t] = in[t];
    __syncthreads();
    for (int k = 0; k < 32; ++k) sum += tile[k];
    __syncthreads();
  }
  out[blockIdx.x * 256 + threadIdx.x] = sum;
}

__global__ void products(float* out, int repeats) {
  const std::uint32_t a[4] = {0x3c003c00u, 0x3c003c00u, 0x3c003c00u, 0x3c003c00u}, b[2] = {0x3c003c00u, 0x3c003c00u};
  float d[4] = {};
  for (int i = 0; i < repeats; ++i) device::mma_m16n8k16_f16(d, a, b);
  out[threadIdx.x] = d[0];
}

/// Median of five runs, in seconds of processor time: the simulator runs in one thread.
template <typename Run>
double seconds(Run&& run) {
  std::vector<double> times;
  for (int i = 0; i < 5; ++i) {
    const std::clock_t start = std::clock();
    run();
    times.push_back(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
  }
  std::sort(times.begin(), times.end());
  return times[2];
}

std::uint64_t switches_of(const std::function<void()>& run) {
  const std::uint64_t before = simulator::engine().switches();
  run();
  return simulator::engine().switches() - before;
}

void report(const char* what, double count, double time) {
  fmt::print("{:<44}{:>10.2f} M/s\n", what, count / time / 1e6);
}

}  // namespace
}  // namespace tandem::test

int main() {
  using namespace tandem;
  using namespace tandem::test;
  const auto barrier_run = [] { launch(barriers, {40, 256}, nullptr); };
  report("switches at __syncthreads", static_cast<double>(switches_of(barrier_run)), seconds(barrier_run));

  const DeviceBuffer<float> out(64 * 256);
  const auto warp_run = [&] { launch(warp_sums, {16, 256}, nullptr, out.data(), 40); };
  report("switches at shuffles", static_cast<double>(switches_of(warp_run)), seconds(warp_run));

  constexpr int kRepeats = 50, kBlocks = 40;
  const DeviceBuffer<float> in(std::vector<float>(kRepeats * kBlocks * 256, 1.0f));
  const auto access_run = [&] { launch(accesses, {kBlocks, 256}, nullptr, in.data(), out.data(), kRepeats); };
  report("accesses to global and shared memory", 4.0 * kRepeats * kBlocks * 256, seconds(access_run));

  constexpr int kBroadcasts = 5;
  const auto broadcast_run = [&] { launch(broadcasts, {kBlocks, 256}, nullptr, in.data(), out.data(), kBroadcasts); };
  report("reads of shared words by all warps", 32.0 * kBroadcasts * kBlocks * 256, seconds(broadcast_run));

  constexpr int kProducts = 2000;
  const auto product_run = [&] { launch(products, {1, 32}, nullptr, out.data(), kProducts); };
  report("tensor-core tiles m16n8k16", kProducts, seconds(product_run));
}
