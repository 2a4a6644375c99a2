// A warp's way from tiles in shared memory to the registers of its tensor-core products, and a thread's share of the
// copies into them.
#pragma once

#include "tandem/kernels/conv/implicit_gemm/tile_layout.h"
#include "tandem/kernels/device/atoms.h"

namespace tandem::kernels::cuda::implicit_gemm {

/// Where a thread copies its vectors of a tile to: one vector of every kLinesAtOnce-th line.
template <typename T, int kSize, bool kAlongDepth, int kThreads>
struct CopyShare {
  using Layout = TileLayout<T, kSize, kAlongDepth>;
  static constexpr int kLinesAtOnce = kThreads / Layout::kVectors;
  static constexpr int kTurns = Layout::kLines / kLinesAtOnce;
  static constexpr int kSwizzledLines = sizeof(T) == 4 && !kAlongDepth ? 4 : 8;  // until the swizzle repeats
  static_assert(kLinesAtOnce % kSwizzledLines == 0 && kLinesAtOnce * kTurns == Layout::kLines);

  static __device__ int line() { return static_cast<int>(threadIdx.x) / Layout::kVectors; }
  static __device__ int vector() { return static_cast<int>(threadIdx.x) % Layout::kVectors; }
  /// As the swizzle repeats, a thread's places are evenly spaced.
  static __device__ int place(int turn) {
    return Layout::place(line(), vector()) + turn * kLinesAtOnce * Layout::kVectors * kVectorSize<T>;
  }
};

/// The left operand of m16n8k16 or m16n8k8: 16 rows and 32 bytes of depth from (begin + row, depth) on; `begin` is a
/// multiple of 32.
template <typename Layout, typename T>
__device__ void load_left(std::uint32_t (&registers)[4], const T* tile, int begin, int row, int depth, int lane) {
  if constexpr (Layout::kAlongDepth) {
    device::ldmatrix_x4(registers, tile + Layout::left(lane, begin + row, depth));
  } else if constexpr (sizeof(T) == 2) {
    device::ldmatrix_x4_trans(registers, tile + Layout::left(lane, begin + row, depth));
  } else {
#pragma unroll
    for (int i = 0; i < 4; ++i)
      registers[i] = __float_as_uint(tile[begin + Layout::transposed(lane, row + i % 2 * 8, depth + i / 2 * 4)]);
  }
}

/// The right operands of two of them: 16 columns from (begin + column, depth) on.
template <typename Layout, typename T>
__device__ void load_right(std::uint32_t (&first)[2], std::uint32_t (&second)[2], const T* tile, int begin, int column,
                           int depth, int lane) {
  std::uint32_t both[4];
  if constexpr (Layout::kAlongDepth) {
    device::ldmatrix_x4(both, tile + Layout::right(lane, begin + column, depth));
  } else if constexpr (sizeof(T) == 2) {
    device::ldmatrix_x4_trans(both, tile + Layout::right(lane, begin + column, depth));
  } else {
#pragma unroll
    for (int i = 0; i < 4; ++i)
      both[i] = __float_as_uint(tile[begin + Layout::transposed(lane, column + i / 2 * 8, depth + i % 2 * 4)]);
  }
  first[0] = both[0];
  first[1] = both[1];
  second[0] = both[2];
  second[1] = both[3];
}

}  // namespace tandem::kernels::cuda::implicit_gemm
