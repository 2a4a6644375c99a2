// What files of correct kernels share: inputs, launches, and why a kernel is not shown to a tool. For .cu files.
#pragma once

#include "tandem/core/cuda/launch.h"
#include "tests/simulator/correct_kernels.h"
#include "tests/simulator/device_buffer.h"

#include <cstddef>
#include <vector>

namespace tandem::test {

inline std::vector<float> counting(std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i % 17) - 8.0f;
  return values;
}

template <typename T>
std::vector<double> doubles(const DeviceBuffer<T>& buffer) {
  const std::vector<T> values = buffer.download();
  return {values.begin(), values.end()};
}

/// Runs a kernel float* -> float*.
inline std::vector<double> run(void (*kernel)(const float*, float*), unsigned blocks, unsigned threads, std::size_t in,
                               std::size_t out) {
  const DeviceBuffer<float> input(counting(in)), output(out);
  launch(kernel, {blocks, threads}, nullptr, input.data(), output.data());
  return doubles(output);
}

inline std::vector<double> run(void (*kernel)(int*), unsigned threads, std::size_t out) {
  const DeviceBuffer<int> output(out);
  launch(kernel, {1, threads}, nullptr, output.data());
  return doubles(output);
}

inline std::vector<double> run(void (*kernel)(int*), unsigned threads) { return run(kernel, threads, threads); }

// What compute-sanitizer makes of kernels, by its manual (docs.nvidia.com/compute-sanitizer) and the options of 2025.3,
// the version of CUDA 13.0. Racecheck orders accesses to shared memory by barriers, __syncwarp, mbarriers and
// asynchronous copies: atomics and fences are not among the synchronisation that it knows, so what is handed over by a
// flag or under a lock is a hazard to it. Synccheck reports "divergent threads" at barriers; the manual does not say
// that it leaves out threads that have returned, as hardware does since Volta (CUDA C++ programming guide,
// "__syncthreads(): all non-exited threads"). Nor does the manual say that memcheck takes a cp.async for as short as
// its source is.
inline constexpr LeftOut kHandsOver{"racecheck", "it follows barriers, not atomics and fences"};
inline constexpr LeftOut kLeavesEarly{"synccheck", "it may take threads that have returned for divergent ones"};
inline constexpr LeftOut kEndsEarly{"memcheck", "it may take a copy whose source ends early for a whole one"};

}  // namespace tandem::test
