// The epilogue: what becomes of a tile of sums, from registers through shared memory to rows of 16 bytes per thread.
#pragma once

#include "tandem/kernels/conv/implicit_gemm/main_loop.cuh"
#include "tandem/kernels/device/fragments.h"
#include "tandem/kernels/device/half.h"
#include "tandem/kernels/device/named_barrier.h"
#include "tandem/kernels/device/vector.h"
#include "tandem/kernels/gemm/gate.cuh"

#include <concepts>

namespace tandem::kernels::cuda::implicit_gemm {

/// What becomes of a sum before it is rounded.
template <typename Result>
concept SumFinisher = requires(const Result& result, int column, float sum) {
  {
    result.addend(column)
  } -> std::same_as<device::Vector<float, 2>>;  // of two neighbouring columns, added to the sums
  { result.finished(sum) } -> std::same_as<float>;
};

/// What becomes of rows of finished sums; T is the storage type, rows and columns are those of the whole result.
template <typename Result, typename T>
concept RowResult =
    SumFinisher<Result> && requires(const Result& result, int row, int column,
                                    device::Vector<T, kVectorSize<T>>& values, int tile_row, float sum) {
      // All threads of a block call it. It may change the values; false if they lie past the end and were not stored.
      { result.store(row, column, values) } -> std::same_as<bool>;
      { Result::kSumsColumns } -> std::convertible_to<bool>;  // whether it has the two functions for sums of columns:
      requires !Result::kSumsColumns || requires {
        { result.sums_columns() } -> std::same_as<bool>;  // whether it wants them in this launch
        result.store_column_sum(tile_row, column, sum);   // of the values that a row of tiles stored
      };
    };

/// What becomes of a tile of accumulators, of which (first_row, first_column) is the first; mostly store_tile().
/// `shared` is the shared memory of the main loop, which is over.
template <typename Result, typename T, typename Shape>
concept TileResult =
    requires(const Result& result, const Accumulators<Shape>& accumulators, const WarpPlace<Shape>& at, int first_row,
             int first_column, T* shared) { result.write_tile(accumulators, at, first_row, first_column, shared); };

/// The addend of results with a bias [columns], which may be null.
template <typename T>
__device__ device::Vector<float, 2> bias_addend(const T* bias, int columns, int column) {
  if (bias == nullptr || column >= columns) return {};
  return load_floats<2>(bias + column);
}

/// Finished sums, rounded, as lines of a tile in shared memory.
template <typename T, typename Shape, SumFinisher Result>
__device__ void stage_tile(const Result& result, const Accumulators<Shape>& accumulators, const WarpPlace<Shape>& at,
                           int first_column, T* staged) {
#pragma unroll
  for (int j = 0; j < Accumulators<Shape>::kMmaColumns; ++j) {
    const int column = at.column + j * 8 + device::sum_column(at.lane);
    const device::Vector<float, 2> addend = result.addend(first_column + column);
#pragma unroll
    for (int i = 0; i < Accumulators<Shape>::kMmaRows; ++i)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int row = at.row + i * 16 + half * 8 + device::sum_row(at.lane);
        device::Vector<T, 2> pair;
#pragma unroll
        for (int k = 0; k < 2; ++k)
          pair[k] = device::from_float<T>(result.finished(accumulators.value[i][j][half * 2 + k] + addend[k]));
        const int place = across_place<T, Shape::kColumns>(row, column / kVectorSize<T>);
        device::store_vector(staged + place + column % kVectorSize<T>, pair);
      }
  }
}

/// Bits of which of 8 elements are positive, lowest first. All threads of a block call it with their vectors of staged
/// rows; where a vector is half of a byte, the thread that has the first half gets the whole.
template <typename T>
__device__ unsigned sign_bits(const device::Vector<T, kVectorSize<T>>& values) {
  unsigned bits = 0;
#pragma unroll
  for (int k = 0; k < kVectorSize<T>; ++k) bits |= (device::to_float(values[k]) > 0.0f ? 1u : 0u) << k;
  if constexpr (kVectorSize<T> == 4) bits |= __shfl_down_sync(device::kAllLanes, bits, 1) << 4;
  return bits;
}

/// A thread's share of the staged tile: one vector of every kRowsAtOnce-th row.
template <typename T, typename Shape>
struct StoreShare {
  static constexpr int kVectors = Shape::kColumns / kVectorSize<T>;
  static constexpr int kRowsAtOnce = Shape::kThreads / kVectors;
  static constexpr int kTurns = Shape::kRows / kRowsAtOnce;

  static __device__ int vector() { return static_cast<int>(threadIdx.x) % kVectors; }
  static __device__ int row() { return static_cast<int>(threadIdx.x) / kVectors; }
};

/// Waits for all threads that work on a tile: the block's, unless the shape names a barrier of theirs.
template <typename Shape>
__device__ void sync_tile() {
  if constexpr (requires { Shape::kBarrier; }) {
    device::sync_named<Shape::kThreads>(Shape::kBarrier);
  } else {
    __syncthreads();
  }
}

/// The sum of a column over the threads that stored it, always in the same order, in the thread of the column's number;
/// 0 in others. `scratch` has room for a vector of floats per thread and 16 more.
template <typename T, typename Shape>
__device__ float column_total(const device::Vector<float, kVectorSize<T>>& sums, float* scratch) {
  using Share = StoreShare<T, Shape>;
  // Fours, so that neighbours write neighbours; the second fours of vectors half a row of banks further on.
  constexpr int kLine = Share::kVectors * 4, kSecondFours = Share::kRowsAtOnce * kLine + 16;
  const int place = Share::row() * kLine + Share::vector() * 4;
#pragma unroll
  for (int k = 0; k < kVectorSize<T>; k += 4)
    device::store_vector(scratch + k / 4 * kSecondFours + place,
                         device::Vector<float, 4>{sums[k], sums[k + 1], sums[k + 2], sums[k + 3]});
  sync_tile<Shape>();
  const int column = static_cast<int>(threadIdx.x);
  if (column >= Shape::kColumns) return 0.0f;
  const float* const mine =
      scratch + column % kVectorSize<T> / 4 * kSecondFours + column / kVectorSize<T> * 4 + column % 4;
  float sum = mine[0];
  for (int row = 1; row < Share::kRowsAtOnce; ++row) sum += mine[row * kLine];
  return sum;
}

/// Where column_total() works: behind the staged tile.
template <typename T, typename Shape>
__device__ float* scratch_of(T* shared) {
  constexpr int kTileBytes = Shape::kRows * Shape::kColumns * static_cast<int>(sizeof(T));
  static_assert(kTileBytes + Shape::kThreads * kVectorSize<T> * 4 + 64 <= Shape::kSharedBytes);
  return reinterpret_cast<float*>(shared + Shape::kRows * Shape::kColumns);
}

/// Stores the tile from (first_row, first_column) on. `shared` is what the main loop has used.
template <typename T, typename Shape, RowResult<T> Result>
__device__ void store_tile(const Result& result, const Accumulators<Shape>& accumulators, const WarpPlace<Shape>& at,
                           int first_row, int first_column, T* shared) {
  using Share = StoreShare<T, Shape>;
  stage_tile(result, accumulators, at, first_column, shared);
  sync_tile<Shape>();
  device::Vector<float, kVectorSize<T>> column_sums = {};
#pragma unroll
  for (int turn = 0; turn < Share::kTurns; ++turn) {
    const int row = Share::row() + turn * Share::kRowsAtOnce;
    auto values = device::load_vector<kVectorSize<T>>(shared + across_place<T, Shape::kColumns>(row, Share::vector()));
    const bool stored = result.store(first_row + row, first_column + Share::vector() * kVectorSize<T>, values);
    if constexpr (Result::kSumsColumns) {
#pragma unroll
      for (int k = 0; k < kVectorSize<T>; ++k) column_sums[k] += stored ? device::to_float(values[k]) : 0.0f;
    }
  }
  if constexpr (Result::kSumsColumns) {
    if (result.sums_columns()) {
      const float total = column_total<T, Shape>(column_sums, scratch_of<T, Shape>(shared));
      const int column = static_cast<int>(threadIdx.x);
      if (column < Shape::kColumns) result.store_column_sum(first_row / Shape::kRows, first_column + column, total);
    }
  }
}

}  // namespace tandem::kernels::cuda::implicit_gemm
