// A kernel of three phases, for tests of kernels/device/phases.cuh.
#pragma once

#include "tandem/core/tensor.h"

#include <array>
#include <cstdint>
#include <vector>

namespace tandem::test {

/// Blocks of the three phases.
using PhaseSizes = std::array<unsigned, 3>;

/// Launches it on the current stream of the GPU that `numbers` i32[first, 64], `sums` i32[second, 64] and `out`
/// i32[last, 64] are on. Each phase adds up what all blocks of the one before have left, each thread what its neighbour
/// has.
void run_three_phases(const PhaseSizes& sizes, const Tensor& numbers, const Tensor& sums, const Tensor& out);

/// What it leaves in `out`.
std::vector<double> sums_of_three_phases(const PhaseSizes& sizes);

/// Where the counters of the device's current stream are.
const void* place_of_counters(Device device);
/// What they are, once the stream is idle.
std::vector<std::uint32_t> values_of_counters(Device device);

}  // namespace tandem::test
