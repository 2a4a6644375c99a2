// One tile of a matrix product, by one block: operands pass through shared memory, sums stay in registers.
//
// An operand says where its elements are; matrices and the patches of a convolution are both operands:
//
//   struct Operand {
//     struct Row;                                           what is known of a row once for all steps
//     Row row(std::int64_t row) const;                      rows past the end give zeros
//     Vector<float, N> load<N>(Row, depth, depth_end);      N elements; zeros from depth_end on
//     bool along_depth() const;                             N > 1: neighbours in depth, or else in rows
//   };
//
// "Row" counts M in the left operand and N in the right one; "depth" counts the products behind one sum. The result
// takes sums by store<N>(row, column, Vector<float, N>), which all threads call; if its kSumsRows is true, it gets the
// sum of each row of the left operand as well, by store_row_sum(row, sum), from the tiles of the first column.
#pragma once

#include "tandem/kernels/device/shared.h"
#include "tandem/kernels/device/vector.h"

#include <cstdint>

namespace tandem::kernels {

constexpr int kDepth = 16;  // products that each step adds to every sum
constexpr int kSide = 4;    // each thread has kSide x kSide sums

template <int kTile>
constexpr int kTileThreads = (kTile / kSide) * (kTile / kSide);

/// Where row `row` of a tile stands in shared memory: groups of four change places, so that neither the threads that
/// write neighbours in depth nor those that write neighbours in rows meet in a bank.
__device__ constexpr int place_of(int depth, int row) {
  const int turn = ((depth >> 3 ^ depth >> 1) & 1) << 2 | (depth >> 2 & 1) << 1 | (depth & 1);
  return row ^ turn << 2;
}

/// What one thread brings of one operand to each step, from global memory by registers to shared memory.
template <typename Operand, int kTile, bool kVectors>
class Carrier {
  static constexpr int kWidth = kVectors ? 4 : 1;
  static constexpr int kLoads = kTile * kDepth / kTileThreads<kTile> / kWidth;

 public:
  __device__ Carrier(const Operand& operand, std::int64_t first_row) : operand_(operand) {
    const int thread = static_cast<int>(threadIdx.x);
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      const int load_index = thread + i * kTileThreads<kTile>;
      if (!operand.along_depth()) {
        constexpr int kAcross = kTile / kWidth;
        rows_in_tile_[i] = load_index % kAcross * kWidth;
        depths_[i] = load_index / kAcross;
      } else if constexpr (kVectors) {
        rows_in_tile_[i] = load_index / (kDepth / kWidth);
        depths_[i] = load_index % (kDepth / kWidth) * kWidth;
      } else {  // eight neighbours of four rows to a warp: whole sectors of 32 bytes
        rows_in_tile_[i] = load_index / 8 % kTile;
        depths_[i] = load_index % 8 + load_index / (8 * kTile) * 8;
      }
      rows_[i] = operand.row(first_row + rows_in_tile_[i]);
    }
  }

  __device__ void fetch(std::int64_t depth, std::int64_t depth_end) {
#pragma unroll
    for (int i = 0; i < kLoads; ++i)
      values_[i] = operand_.template load<kWidth>(rows_[i], depth + depths_[i], depth_end);
  }

  __device__ void put(float (&tile)[kDepth][kTile]) const {
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      if (operand_.along_depth()) {
#pragma unroll
        for (int j = 0; j < kWidth; ++j)
          tile[depths_[i] + j][place_of(depths_[i] + j, rows_in_tile_[i])] = values_[i][j];
      } else {
        device::store_vector(&tile[depths_[i]][place_of(depths_[i], rows_in_tile_[i])], values_[i]);
      }
    }
  }

 private:
  const Operand& operand_;
  typename Operand::Row rows_[kLoads];
  device::Vector<float, kWidth> values_[kLoads];
  int rows_in_tile_[kLoads];
  int depths_[kLoads];
};

/// The rows and columns of the tile that this thread sums up. Neighbouring threads have neighbouring columns, four of
/// them each where those are stored in one access, and else one of every group.
template <int kTile, bool kVectors>
struct ThreadTile {
  static constexpr int kAcross = kTile / kSide;

  static __device__ int row(int i) { return static_cast<int>(threadIdx.x) / kAcross * kSide + i; }
  static __device__ int column(int j) {
    const int x = static_cast<int>(threadIdx.x) % kAcross;
    return kVectors ? x * kSide + j : x + j * kAcross;
  }
};

/// What is in shared memory of row `row` of a tile, on top of `sum`.
template <int kTile>
__device__ float add_row(const float (&tile)[kDepth][kTile], int row, float sum) {
#pragma unroll
  for (int k = 0; k < kDepth; ++k) sum += tile[k][place_of(k, row)];
  return sum;
}

/// A block's tile of the result, summed up from `depth` to `depth_end`. All of its threads call it.
template <int kTile, bool kVectors, typename A, typename B, typename Result>
__device__ void sum_tile(const A& a, const B& b, const Result& result, std::int64_t first_row,
                         std::int64_t first_column, std::int64_t depth, std::int64_t depth_end) {
  // Two of each: while one is multiplied, the next is written, and one barrier a step is enough.
  TANDEM_SHARED(float, a_tiles, [2][kDepth][kTile]);
  TANDEM_SHARED(float, b_tiles, [2][kDepth][kTile]);
  using Mine = ThreadTile<kTile, kVectors>;
  Carrier<A, kTile, kVectors> from_a(a, first_row);
  Carrier<B, kTile, kVectors> from_b(b, first_column);
  from_a.fetch(depth, depth_end);
  from_b.fetch(depth, depth_end);
  float sums[kSide][kSide] = {};
  const int my_row = static_cast<int>(threadIdx.x);
  const bool sums_row = Result::kSumsRows && first_column == 0 && my_row < kTile;
  float row_sum = 0.0f;
  for (int buffer = 0; depth < depth_end; depth += kDepth, buffer ^= 1) {
    from_a.put(a_tiles[buffer]);
    from_b.put(b_tiles[buffer]);
    __syncthreads();
    from_a.fetch(depth + kDepth, depth_end);
    from_b.fetch(depth + kDepth, depth_end);
#pragma unroll
    for (int k = 0; k < kDepth; ++k) {
      const auto left = device::load_vector<kSide>(&a_tiles[buffer][k][place_of(k, Mine::row(0))]);
      device::Vector<float, kSide> right;
      if constexpr (kVectors) {
        right = device::load_vector<kSide>(&b_tiles[buffer][k][place_of(k, Mine::column(0))]);
      } else {
#pragma unroll
        for (int j = 0; j < kSide; ++j) right[j] = b_tiles[buffer][k][place_of(k, Mine::column(j))];
      }
#pragma unroll
      for (int i = 0; i < kSide; ++i)
#pragma unroll
        for (int j = 0; j < kSide; ++j) sums[i][j] += left[i] * right[j];
    }
    if (sums_row) row_sum = add_row(a_tiles[buffer], my_row, row_sum);
  }

#pragma unroll
  for (int i = 0; i < kSide; ++i) {
    const std::int64_t row = first_row + Mine::row(i);
    if constexpr (kVectors) {
      result.template store<kSide>(row, first_column + Mine::column(0),
                                   {sums[i][0], sums[i][1], sums[i][2], sums[i][3]});
    } else {
#pragma unroll
      for (int j = 0; j < kSide; ++j) result.template store<1>(row, first_column + Mine::column(j), {sums[i][j]});
    }
  }
  if constexpr (Result::kSumsRows) {
    if (sums_row) result.store_row_sum(first_row + my_row, row_sum);
  }
}

/// One block per tile of the result and part of the depth, which is blockIdx.y.
template <int kTile, bool kVectors, typename A, typename B, typename Result>
__global__ void __launch_bounds__(kTileThreads<kTile>)
    tile_product(A a, B b, Result result, std::int64_t depth_end, std::int64_t part_depth, unsigned column_tiles) {
  const std::int64_t first_row = std::int64_t{blockIdx.x / column_tiles} * kTile;
  const std::int64_t first_column = std::int64_t{blockIdx.x % column_tiles} * kTile;
  const std::int64_t depth = blockIdx.y * part_depth;
  if (depth + part_depth < depth_end) depth_end = depth + part_depth;
  sum_tile<kTile, kVectors>(a, b, result, first_row, first_column, depth, depth_end);
}

}  // namespace tandem::kernels
