// Loop nests over several strided operands: from an index to offsets, in kernels.
#pragma once

#include "tandem/kernels/device/nest.h"

#include <cuda_runtime.h>

namespace tandem::device {

template <int kOperands>
struct Offsets {
  std::int64_t offset[kOperands] = {};
};

/// Where the `index`-th element of each operand stands.
template <int kOperands>
__device__ Offsets<kOperands> offsets_of(const Nest<kOperands>& nest, unsigned index) {
  Offsets<kOperands> result;
  // Over a fixed number of dimensions, so that the nest is read by constants and stays where it is.
#pragma unroll
  for (int dim = 0; dim < kMaxRank; ++dim) {
    const bool outermost = dim + 1 >= nest.rank;
    const unsigned rest = outermost ? 0 : index / nest.sizes[dim];
    const unsigned at = outermost ? index : index - rest * nest.sizes[dim];
    for (int k = 0; k < kOperands; ++k) result.offset[k] += static_cast<std::int64_t>(at) * nest.steps[k][dim];
    if (outermost) break;
    index = rest;
  }
  return result;
}

}  // namespace tandem::device
