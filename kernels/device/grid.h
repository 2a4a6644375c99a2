// Sizes of grids, and loops over more elements than there are threads.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

namespace tandem::device {

constexpr int kThreadsPerBlock = 256;

/// Blocks for `count` vectors of work at `per_block` a block; at least 1, at most `limit` (kernels loop over the rest).
inline unsigned blocks_for(std::int64_t count, std::int64_t per_block, std::int64_t limit = 132 * 16) {
  return static_cast<unsigned>(std::clamp<std::int64_t>((count + per_block - 1) / per_block, 1, limit));
}

/// This thread's number in a one-dimensional grid, and how many threads there are.
__device__ inline std::int64_t thread_in_grid() {
  return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ inline std::int64_t threads_in_grid() { return static_cast<std::int64_t>(gridDim.x) * blockDim.x; }

}  // namespace tandem::device
