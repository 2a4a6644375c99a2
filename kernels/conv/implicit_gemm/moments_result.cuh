// The forward pass that also leaves what batch norm asks of its result: moments of each tile's rows, channel by
// channel.
#pragma once

#include "tandem/kernels/conv/implicit_gemm/implicit_gemm.h"
#include "tandem/kernels/conv/implicit_gemm/results.cuh"

namespace tandem::kernels::cuda::implicit_gemm {

/// Where the moments of parts of a result's rows go.
struct MomentsTarget {
  double* moments;  // [3, parts, columns]: count, mean, squared deviations from it
  int parts, columns;

  /// Leaves the moments of a tile's columns as those of a part. This thread holds values_of(turn) where the bit of
  /// `held` is set; `totals` are their sums less `shift` for each, some value of the column, so that they are of the
  /// size of the deviations, however far from zero the values are. Line 0 of `shared` holds the shift.
  template <typename T, typename Shape, int kTurns, typename ValuesOf>
  __device__ void write(int part, int count, int first_column, const device::Vector<T, kVectorSize<T>>& shift,
                        device::Vector<float, kVectorSize<T>> totals, unsigned held, T* shared,
                        const ValuesOf& values_of) const {
    using Share = StoreShare<T, Shape>;
    float* const scratch = scratch_of<T, Shape>(shared);
    const int own = static_cast<int>(threadIdx.x);  // the column whose total this thread gets
    const float mean = column_total<T, Shape>(totals, scratch) / static_cast<float>(count);
    __syncthreads();
    if (own < Shape::kColumns) scratch[own] = mean;
    __syncthreads();
    device::Vector<float, kVectorSize<T>> means;
#pragma unroll
    for (int k = 0; k < kVectorSize<T>; k += 4) {
      const auto four = device::load_vector<4>(scratch + Share::vector() * kVectorSize<T> + k);
#pragma unroll
      for (int i = 0; i < 4; ++i) means[k + i] = four[i];
    }
    totals = {};
#pragma unroll
    for (int turn = 0; turn < kTurns; ++turn) {
      if ((held >> turn & 1u) == 0) continue;
      const device::Vector<T, kVectorSize<T>> values = values_of(turn);
#pragma unroll
      for (int k = 0; k < kVectorSize<T>; ++k) {
        const float deviation = device::to_float(values[k]) - device::to_float(shift[k]) - means[k];
        totals[k] += deviation * deviation;
      }
    }
    __syncthreads();  // all have their means: the scratch is free again
    const float squares = column_total<T, Shape>(totals, scratch);
    if (own >= Shape::kColumns || first_column + own >= columns) return;
    const T first = shared[across_place<T, Shape::kColumns>(0, own / kVectorSize<T>) + own % kVectorSize<T>];
    const auto put = [&](int field, double value) {
      moments[(std::int64_t{field} * parts + part) * columns + first_column + own] = value;
    };
    put(0, count);
    put(1, static_cast<double>(device::to_float(first)) + static_cast<double>(mean));
    put(2, squares);
  }
};

/// y = the sums + bias, and of each part of its rows and each column count, mean, and squared deviations from it.
template <typename T>
struct MomentsResult {
  T* y;
  int rows, columns;
  const T* bias;    // may be null
  double* moments;  // [3, parts, columns]
  int parts;

  __device__ device::Vector<float, 2> addend(int column) const { return bias_addend(bias, columns, column); }

  __device__ float finished(float sum) const { return sum; }

  /// Stores rows of a tile where row_of(row) says that they are y's, `count` of them, the first among them, and the
  /// moments of what is stored, rounded, as those of a part.
  template <typename Shape, typename RowOf>
  __device__ void write_rows(const Accumulators<Shape>& accumulators, const WarpPlace<Shape>& at, int first_column,
                             T* shared, int part, int count, const RowOf& row_of) const {
    using Share = StoreShare<T, Shape>;
    using Values = device::Vector<T, kVectorSize<T>>;
    stage_tile(*this, accumulators, at, first_column, shared);
    __syncthreads();
    const auto staged = [&](int row) {
      return device::load_vector<kVectorSize<T>>(shared + across_place<T, Shape::kColumns>(row, Share::vector()));
    };
    const Values shift = staged(0);
    const int column = first_column + Share::vector() * kVectorSize<T>;
    device::Vector<float, kVectorSize<T>> totals = {};
    unsigned stored = 0;
#pragma unroll
    for (int turn = 0; turn < Share::kTurns; ++turn) {
      const int in_tile = Share::row() + turn * Share::kRowsAtOnce, row = row_of(in_tile);
      if (row >= rows || column >= columns) continue;
      const Values values = staged(in_tile);
      device::store_vector(y + row * columns + column, values);
      stored |= 1u << turn;
#pragma unroll
      for (int k = 0; k < kVectorSize<T>; ++k) totals[k] += device::to_float(values[k]) - device::to_float(shift[k]);
    }
    const MomentsTarget target{moments, parts, columns};
    target.write<T, Shape, Share::kTurns>(part, count, first_column, shift, totals, stored, shared,
                                          [&](int turn) { return staged(Share::row() + turn * Share::kRowsAtOnce); });
  }

  template <typename Shape>
  __device__ void write_tile(const Accumulators<Shape>& accumulators, const WarpPlace<Shape>& at, int first_row,
                             int first_column, T* shared) const {
    const int left = rows - first_row;
    write_rows(accumulators, at, first_column, shared, first_row / Shape::kRows,
               left < Shape::kRows ? left : Shape::kRows, [&](int row) { return first_row + row; });
  }
};

}  // namespace tandem::kernels::cuda::implicit_gemm
