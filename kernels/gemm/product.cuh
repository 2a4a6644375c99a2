// A whole matrix product in tiles; where there are few tiles, the depth is cut into parts that are added in order.
#pragma once

#include "tandem/core/cuda/current_stream.h"
#include "tandem/core/cuda/launch.h"
#include "tandem/core/memory.h"
#include "tandem/core/out.h"
#include "tandem/kernels/device/grid.h"
#include "tandem/kernels/gemm/matrix.cuh"
#include "tandem/kernels/gemm/product_plan.h"

namespace tandem::kernels {

/// result = the parts, added in order.
template <typename Result>
__global__ void add_parts(const float* parts, std::int64_t part_count, Result result) {
  const std::int64_t size = result.rows * result.columns;
  for (std::int64_t i = device::thread_in_grid(); i < size; i += device::threads_in_grid()) {
    float sum = 0.0f;
    for (std::int64_t part = 0; part < part_count; ++part) sum += parts[part * size + i];
    result.template store<1>(i / result.columns, i % result.columns, {sum});
  }
}

/// Launches that: parts are [count, rows, columns] of f32, or of any shape with as many elements.
template <typename Result>
void launch_add_parts(const Tensor& parts, const Result& result, cudaStream_t stream) {
  const std::int64_t size = result.rows * result.columns;
  launch(add_parts<Result>, {device::blocks_for(size, device::kThreadsPerBlock), device::kThreadsPerBlock}, stream,
         parts.data<float>(), parts.size(0), result);
}

/// Launches the tiles: `vectors` says that operands and result take whole fours. Those of a batch know their product by
/// blockIdx.z, which is below `batches`.
template <typename A, typename B, typename Result>
void launch_tiles(const ProductPlan& plan, bool vectors, const A& a, const B& b, const Result& result,
                  std::int64_t depth, cudaStream_t stream, unsigned batches = 1) {
  const dim3 grid(static_cast<unsigned>(plan.row_tiles * plan.column_tiles), static_cast<unsigned>(plan.parts),
                  batches);
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

/// result (+)= a b on the device and current stream of `model`, as plan_product() says. A MatrixResult, or what is
/// derived from it, that has elements.
template <typename A, typename B, typename Result>
void multiply(const A& a, const B& b, const Result& result, std::int64_t depth, bool vectors, const Tensor& model) {
  const ProductPlan plan = plan_product(result.rows, result.columns, depth);
  const cudaStream_t stream = tandem::cuda::current_stream(model);
  vectors = vectors && result.takes_vectors();
  if (plan.parts == 1) return launch_tiles(plan, vectors, a, b, result, depth, stream);

  const MemoryTagScope tag(MemoryTag::workspace);
  const auto added = of_added_parts(result);
  const Out parts(Tensor::empty({plan.parts, added.rows * added.columns}, {.device = model.device()}));
  Result to_parts = result;
  to_parts.parts = parts.data<float>();
  launch_tiles(plan, vectors, a, b, to_parts, depth, stream);
  launch_add_parts(parts, added, stream);
}

}  // namespace tandem::kernels
