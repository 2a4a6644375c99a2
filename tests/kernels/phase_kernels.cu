// The kernel of three phases.
#include "tests/kernels/phase_kernels.h"

#include "tandem/core/cuda/current_stream.h"
#include "tandem/core/cuda/launch.h"
#include "tandem/core/out.h"
#include "tandem/kernels/device/phases.cuh"

namespace tandem::test {

namespace {

constexpr int kThreads = 64;

__global__ void three_phases(unsigned first, unsigned second, unsigned last, device::Phases phases, int* numbers,
                             int* sums, int* out) {
  const unsigned turn = phases.begin();
  const int t = static_cast<int>(threadIdx.x), neighbour = (t + 1) % kThreads;
  if (turn < first) {
    numbers[turn * kThreads + t] = static_cast<int>(turn) + t;
    return phases.finish();
  }
  if (turn < first + second) {
    phases.await(first);
    int sum = static_cast<int>(turn - first);
    for (unsigned i = 0; i < first; ++i) sum += numbers[i * kThreads + neighbour];
    sums[(turn - first) * kThreads + t] = sum;
    return phases.finish();
  }
  phases.await_last(first + second, last);
  int sum = 0;
  for (unsigned i = 0; i < second; ++i) sum += sums[i * kThreads + neighbour];
  out[(turn - first - second) * kThreads + t] = sum;
}

}  // namespace

void run_three_phases(const PhaseSizes& sizes, const Tensor& numbers, const Tensor& sums, const Tensor& out) {
  const cudaStream_t stream = cuda::current_stream(numbers);
  launch(three_phases, {sizes[0] + sizes[1] + sizes[2], kThreads}, stream, sizes[0], sizes[1], sizes[2],
         device::Phases(stream), Out(numbers).data<std::int32_t>(), Out(sums).data<std::int32_t>(),
         Out(out).data<std::int32_t>());
}

std::vector<double> sums_of_three_phases(const PhaseSizes& sizes) {
  std::vector<double> all;
  for (unsigned block = 0; block < sizes[2]; ++block) {
    for (int t = 0; t < kThreads; ++t) {
      double sum = 0.0;
      for (unsigned i = 0; i < sizes[1]; ++i) {
        sum += i;
        for (unsigned j = 0; j < sizes[0]; ++j) sum += j + (t + 2) % kThreads;
      }
      all.push_back(sum);
    }
  }
  return all;
}

const void* place_of_counters(Device device) { return cuda::phase_counters(cuda::current_stream(device)); }

std::vector<std::uint32_t> values_of_counters(Device device) {
  const cudaStream_t stream = cuda::current_stream(device);
  std::vector<std::uint32_t> all(cuda::kPhaseCounters * cuda::kPhaseCounterStep, 1u);
  TANDEM_CHECK_CUDA(cudaMemcpyAsync(all.data(), cuda::phase_counters(stream), all.size() * sizeof(std::uint32_t),
                                    cudaMemcpyDeviceToHost, stream));
  TANDEM_CHECK_CUDA(cudaStreamSynchronize(stream));
  return all;
}

}  // namespace tandem::test
