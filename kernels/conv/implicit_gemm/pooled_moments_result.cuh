// Bias, the maxima of 2 x 2 outputs, and what batch norm asks of these: moments of each tile's windows, channel by
// channel. Only the maxima are written.
#pragma once

#include "tandem/kernels/conv/implicit_gemm/moments_result.cuh"
#include "tandem/kernels/conv/implicit_gemm/pooled_result.cuh"
#include "tandem/kernels/device/half.h"
#include "tandem/kernels/device/vector.h"

namespace tandem::kernels::cuda::implicit_gemm {

/// y, of each element the place of the maximum in its window, and of each part of y's rows and each column count, mean,
/// and squared deviations from it; positions and moments may be null.
template <typename T>
struct PooledMomentsResult {
  T* y;
  int rows, columns;  // of y
  const T* bias;      // may be null
  std::uint8_t* positions;
  double* moments;  // [3, parts, columns]
  int parts;

  __device__ device::Vector<float, 2> addend(int column) const { return bias_addend(bias, columns, column); }

  __device__ float finished(float sum) const { return sum; }

  /// Of the windows of a tile, in_tile by in_tile, the maxima of each that `row_of(in_tile)` says is one of y's rows,
  /// `count` of them, the first among them, and their moments as those of a part.
  template <typename Shape, typename RowOf>
  __device__ void write_windows(const Accumulators<Shape>& accumulators, const WarpPlace<Shape>& at, int first_column,
                                T* shared, int part, int count, const RowOf& row_of) const {
    using Share = StoreShare<T, Shape>;
    using Values = device::Vector<T, kVectorSize<T>>;
    constexpr int kTurns = Shape::kRows / kWindowRows / Share::kRowsAtOnce;
    static_assert(kTurns * Share::kRowsAtOnce * kWindowRows == Shape::kRows);
    stage_tile(*this, accumulators, at, first_column, shared);
    __syncthreads();
    Values maxima[kTurns], shift;
    device::Vector<std::uint8_t, kVectorSize<T>> winners;
    pool_window<T, Shape, false>(shared, 0, shift, winners);
    const int column = first_column + Share::vector() * kVectorSize<T>;
    device::Vector<float, kVectorSize<T>> totals = {};
    unsigned stored = 0;
#pragma unroll
    for (int turn = 0; turn < kTurns; ++turn) {
      const int in_tile = Share::row() + turn * Share::kRowsAtOnce, row = row_of(in_tile);
      if (row >= rows || column >= columns) continue;
      pool_window<T, Shape, false>(shared, in_tile, maxima[turn], winners);
      const int at_element = row * columns + column;
      device::store_vector(y + at_element, maxima[turn]);
      if (positions != nullptr) device::store_vector(positions + at_element, winners);
      stored |= 1u << turn;
#pragma unroll
      for (int k = 0; k < kVectorSize<T>; ++k)
        totals[k] += device::to_float(maxima[turn][k]) - device::to_float(shift[k]);
    }
    if (moments == nullptr) return;
    __syncthreads();  // all windows are read: line 0 may become what deviations are relative to
    if (Share::row() == 0) device::store_vector(shared + across_place<T, Shape::kColumns>(0, Share::vector()), shift);
    const MomentsTarget target{moments, parts, columns};
    target.write<T, Shape, kTurns>(part, count, first_column, shift, totals, stored, shared,
                                   [&](int turn) { return maxima[turn]; });
  }

  template <typename Shape>
  __device__ void write_tile(const Accumulators<Shape>& accumulators, const WarpPlace<Shape>& at, int first_row,
                             int first_column, T* shared) const {
    constexpr int kWindows = Shape::kRows / kWindowRows;
    const int first_window = first_row / kWindowRows, left = rows - first_window;
    write_windows(accumulators, at, first_column, shared, first_row / Shape::kRows, left < kWindows ? left : kWindows,
                  [&](int in_tile) { return first_window + in_tile; });
  }
};

}  // namespace tandem::kernels::cuda::implicit_gemm
