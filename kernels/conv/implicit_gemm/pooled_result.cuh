// Bias, ReLU and the maxima of 2 x 2 outputs: only those are written. Four neighbouring rows of a tile are a window.
#pragma once

#include "tandem/kernels/conv/implicit_gemm/implicit_gemm.h"
#include "tandem/kernels/conv/implicit_gemm/results.cuh"

namespace tandem::kernels::cuda::implicit_gemm {

constexpr int kWindow = 2, kWindowRows = kWindow * kWindow;

/// The maxima of window number `window` of a staged tile, as max_pool2d takes them, the first of equals, NaN before
/// all, and their places; those behind a ReLU have kNoPosition where they are not positive.
template <typename T, typename Shape, bool kRelu>
__device__ void pool_window(const T* staged, int window, device::Vector<T, kVectorSize<T>>& maxima,
                            device::Vector<std::uint8_t, kVectorSize<T>>& winners) {
  float best[kVectorSize<T>];
#pragma unroll
  for (int i = 0; i < kWindowRows; ++i) {
    const auto values = device::load_vector<kVectorSize<T>>(
        staged + across_place<T, Shape::kColumns>(window * kWindowRows + i, StoreShare<T, Shape>::vector()));
#pragma unroll
    for (int k = 0; k < kVectorSize<T>; ++k) {
      const float value = device::to_float(values[k]);
      if (i > 0 && !(value > best[k]) && value == value) continue;
      best[k] = value;
      maxima[k] = values[k];
      winners[k] = !kRelu || value > 0.0f ? static_cast<std::uint8_t>(i) : kNoPosition;
    }
  }
}

/// y, and of each element the place of the maximum in its window, or kNoPosition where it is not positive, and a bit
/// that says so; positions and mask may be null.
template <typename T>
struct PooledResult {
  T* y;
  int rows, columns;  // of y
  const T* bias;
  std::uint8_t* positions;
  std::uint8_t* mask;

  __device__ device::Vector<float, 2> addend(int column) const { return bias_addend(bias, columns, column); }

  __device__ float finished(float sum) const { return sum < 0.0f ? 0.0f : sum; }

  /// Of the windows of a tile, in_tile by in_tile, the maxima of each that `row_of(in_tile)` says is one of y's rows.
  template <typename Shape, typename RowOf>
  __device__ void write_windows(const Accumulators<Shape>& accumulators, const WarpPlace<Shape>& at, int first_column,
                                T* shared, const RowOf& row_of) const {
    using Share = StoreShare<T, Shape>;
    constexpr int kTurns = Shape::kRows / kWindowRows / Share::kRowsAtOnce;
    static_assert(kTurns * Share::kRowsAtOnce * kWindowRows == Shape::kRows);
    stage_tile(*this, accumulators, at, first_column, shared);
    __syncthreads();
#pragma unroll
    for (int turn = 0; turn < kTurns; ++turn) {
      const int in_tile = Share::row() + turn * Share::kRowsAtOnce;
      device::Vector<T, kVectorSize<T>> maxima;
      device::Vector<std::uint8_t, kVectorSize<T>> winners;
      pool_window<T, Shape, true>(shared, in_tile, maxima, winners);
      const unsigned bits = sign_bits<T>(maxima);
      const int row = row_of(in_tile), column = first_column + Share::vector() * kVectorSize<T>;
      if (row >= rows || column >= columns) continue;
      const int at_element = row * columns + column;
      device::store_vector(y + at_element, maxima);
      if (positions != nullptr) device::store_vector(positions + at_element, winners);
      if (mask != nullptr && at_element % 8 == 0) mask[at_element / 8] = static_cast<std::uint8_t>(bits);
    }
  }

  template <typename Shape>
  __device__ void write_tile(const Accumulators<Shape>& accumulators, const WarpPlace<Shape>& at, int first_row,
                             int first_column, T* shared) const {
    write_windows(accumulators, at, first_column, shared,
                  [&](int in_tile) { return first_row / kWindowRows + in_tile; });
  }
};

}  // namespace tandem::kernels::cuda::implicit_gemm
