// A warp's way from tiles in shared memory to the registers of its tensor-core products, and a thread's share of the
// copies into them.
#pragma once

#include "core/half.h"
#include "kernels/conv/implicit_gemm/tile_layout.h"
#include "kernels/device/atoms.h"

#include <type_traits>

namespace tandem::kernels::cuda::implicit_gemm {

/// Where a thread copies its pieces of a tile to: one piece of every kLinesAtOnce-th line.
template <typename Layout, int kThreads>
struct CopyShare {
  static constexpr int kLinesAtOnce = kThreads / Layout::kPieces;
  static constexpr int kTurns = Layout::kLines / kLinesAtOnce;
  static_assert(kLinesAtOnce % 8 == 0 && kLinesAtOnce * kTurns == Layout::kLines);

  static __device__ int line() { return static_cast<int>(threadIdx.x) / Layout::kPieces; }
  static __device__ int piece() { return static_cast<int>(threadIdx.x) % Layout::kPieces; }
  /// The swizzle repeats every eight lines, so that a thread's places are evenly spaced.
  static __device__ int place(int turn) {
    return Layout::place(line(), piece()) + turn * kLinesAtOnce * Layout::kPieces * kPiece;
  }
};

/// The left operand of m16n8k16: 16 rows and depths from (row, depth) on.
template <typename Layout, typename T>
__device__ void load_left(std::uint32_t (&registers)[4], const T* tile, int row, int depth, int lane) {
  if constexpr (Layout::kAlongDepth) {
    device::ldmatrix_x4(registers, tile + Layout::left(lane, row, depth));
  } else {
    device::ldmatrix_x4_trans(registers, tile + Layout::left(lane, row, depth));
  }
}

/// The right operands of two m16n8k16: 16 columns and depths from (column, depth) on.
template <typename Layout, typename T>
__device__ void load_right(std::uint32_t (&first)[2], std::uint32_t (&second)[2], const T* tile, int column, int depth,
                           int lane) {
  std::uint32_t both[4];
  if constexpr (Layout::kAlongDepth) {
    device::ldmatrix_x4(both, tile + Layout::right(lane, column, depth));
  } else {
    device::ldmatrix_x4_trans(both, tile + Layout::right(lane, column, depth));
  }
  first[0] = both[0];
  first[1] = both[1];
  second[0] = both[2];
  second[1] = both[3];
}

template <typename T>
__device__ void multiply_blocks(float (&sums)[4], const std::uint32_t (&left)[4], const std::uint32_t (&right)[2]) {
  if constexpr (std::is_same_v<T, Half>) {
    device::mma_m16n8k16_f16(sums, left, right);
  } else {
    static_assert(std::is_same_v<T, BFloat16>);
    device::mma_m16n8k16_bf16(sums, left, right);
  }
}

}  // namespace tandem::kernels::cuda::implicit_gemm
