// A whole matrix product in tiles; where there are few tiles, the depth is cut into parts that are added in order.
#pragma once

#include "core/cuda/current_stream.h"
#include "core/cuda/launch.h"
#include "core/memory.h"
#include "kernels/device/grid.h"
#include "kernels/gemm/matrix.cuh"
#include "kernels/gemm/product_plan.h"

namespace tandem::kernels {

/// One block per tile of the result and part of the depth.
template <int kTile, bool kVectors, typename A, typename B, typename Result>
__global__ void __launch_bounds__(kTileThreads<kTile>)
    tile_product(A a, B b, Result result, std::int64_t depth, std::int64_t part_depth, unsigned column_tiles) {
  const std::int64_t first_row = std::int64_t{blockIdx.x / column_tiles} * kTile;
  const std::int64_t first_column = std::int64_t{blockIdx.x % column_tiles} * kTile;
  const std::int64_t begin = blockIdx.y * part_depth;
  const std::int64_t end = begin + part_depth < depth ? begin + part_depth : depth;
  float sums[kSide][kSide] = {};
  product_tile<kTile, kVectors>(a, b, first_row, first_column, begin, end, sums);
#pragma unroll
  for (int i = 0; i < kSide; ++i)
    result.store(first_row + thread_row<kTile>() + i, first_column + thread_column<kTile>(),
                 {sums[i][0], sums[i][1], sums[i][2], sums[i][3]});
}

/// result = the parts, added in order; a thread per four neighbours.
template <typename T>
__global__ void add_parts(const float* parts, std::int64_t part_count, MatrixResult<T> result) {
  const std::int64_t fours = (result.columns + kSide - 1) / kSide, size = result.rows * result.columns;
  for (std::int64_t i = device::thread_in_grid(); i < result.rows * fours; i += device::threads_in_grid()) {
    const std::int64_t row = i / fours, column = i % fours * kSide;
    device::Vector<float, kSide> sums = {};
    for (std::int64_t part = 0; part < part_count; ++part) {
      const float* const from = parts + part * size + row * result.columns + column;
      const auto more = load_four(from, result.columns % kSide == 0, result.columns - column);
#pragma unroll
      for (int j = 0; j < kSide; ++j) sums[j] += more[j];
    }
    result.store(row, column, sums);
  }
}

/// Launches the tiles: `vectors` says that both operands can be loaded by fours.
template <typename A, typename B, typename Result>
void launch_tiles(const ProductPlan& plan, bool vectors, const A& a, const B& b, const Result& result,
                  std::int64_t depth, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>(plan.row_tiles * plan.column_tiles), static_cast<unsigned>(plan.parts));
  const auto start = [&](auto kernel, unsigned threads) {
    launch(kernel, {grid, threads}, stream, a, b, result, depth, plan.part_depth,
           static_cast<unsigned>(plan.column_tiles));
  };
  if (plan.tile == 64) {
    start(vectors ? tile_product<64, true, A, B, Result> : tile_product<64, false, A, B, Result>, kTileThreads<64>);
  } else {
    start(vectors ? tile_product<32, true, A, B, Result> : tile_product<32, false, A, B, Result>, kTileThreads<32>);
  }
}

/// result (+)= a b on the device and current stream of `model`. Results without elements are the caller's affair.
template <typename T, typename A, typename B>
void multiply(const A& a, const B& b, MatrixResult<T> result, std::int64_t depth, bool vectors, const Tensor& model) {
  const ProductPlan plan = plan_product(result.rows, result.columns, depth);
  const cudaStream_t stream = tandem::cuda::current_stream(model);
  result = result.with_vectors();
  if (plan.parts == 1) return launch_tiles(plan, vectors, a, b, result, depth, stream);

  const MemoryTagScope tag(MemoryTag::workspace);
  const Tensor parts = Tensor::empty({plan.parts, result.rows, result.columns}, {.device = model.device()});
  MatrixResult<T> to_parts = result;
  to_parts.parts = parts.data<float>();
  launch_tiles(plan, vectors, a, b, to_parts, depth, stream);
  const std::int64_t fours = result.rows * ((result.columns + kSide - 1) / kSide);
  launch(add_parts<T>, {device::blocks_for(fours, device::kThreadsPerBlock), device::kThreadsPerBlock}, stream,
         parts.data<float>(), plan.parts, result);
}

}  // namespace tandem::kernels
