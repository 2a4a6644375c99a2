// Sums and maxima over the threads of a warp or a block, always in the same order.
#pragma once

#include "tandem/kernels/device/shared.h"

namespace tandem::device {

constexpr unsigned kAllLanes = 0xffffffffu;
constexpr int kWarpThreads = 32;

/// combine(a, b) over the 32 lanes of a full warp, as a butterfly; every lane gets the result.
template <typename T, typename Combine>
__device__ T warp_reduce(T value, Combine combine) {
#pragma unroll
  for (int distance = kWarpThreads / 2; distance > 0; distance /= 2)
    value = combine(value, __shfl_xor_sync(kAllLanes, value, distance));
  return value;
}

template <typename T>
__device__ T warp_sum(T value) {
  return warp_reduce(value, [](T a, T b) { return a + b; });
}

template <typename T>
__device__ T warp_max(T value) {
  return warp_reduce(value, [](T a, T b) { return a < b ? b : a; });
}

/// combine over all threads of a block of kThreads (a multiple of 32, one-dimensional); every thread gets the result.
/// `identity` changes nothing. All threads must call it; it ends with a barrier, so it can be called again at once.
template <int kThreads, typename T, typename Combine>
__device__ T block_reduce(T value, T identity, Combine combine) {
  static_assert(kThreads % kWarpThreads == 0 && kThreads <= 1024);
  constexpr int kWarps = kThreads / kWarpThreads;
  TANDEM_SHARED(T, of_warps, [kWarps]);
  const int thread = static_cast<int>(threadIdx.x);
  value = warp_reduce(value, combine);
  if (thread % kWarpThreads == 0) of_warps[thread / kWarpThreads] = value;
  __syncthreads();
  value = identity;
#pragma unroll
  for (int warp = 0; warp < kWarps; ++warp) value = combine(value, of_warps[warp]);
  __syncthreads();
  return value;
}

template <int kThreads, typename T>
__device__ T block_sum(T value) {
  return block_reduce<kThreads>(value, T{}, [](T a, T b) { return a + b; });
}

/// combine over the threads that share a row: a warp (kRowThreads is 32), or a whole block of kRowThreads.
template <int kRowThreads, typename T, typename Combine>
__device__ T row_reduce(T value, T identity, Combine combine) {
  if constexpr (kRowThreads == kWarpThreads) return warp_reduce(value, combine);
  return block_reduce<kRowThreads>(value, identity, combine);
}

template <int kRowThreads, typename T>
__device__ T row_sum(T value) {
  return row_reduce<kRowThreads>(value, T{}, [](T a, T b) { return a + b; });
}

}  // namespace tandem::device
