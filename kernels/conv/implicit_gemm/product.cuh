// The kernel behind all tensor-core convolutions, and its launch: result = A B, tile by tile.
#pragma once

#include "tandem/core/cuda/current_stream.h"
#include "tandem/core/cuda/launch.h"
#include "tandem/kernels/conv/implicit_gemm/results.cuh"
#include "tandem/kernels/device/shared.h"
#include "tandem/kernels/float32_products.h"

namespace tandem::kernels::cuda::implicit_gemm {

/// How a product is cut into blocks: tiles of the result, `column_tiles` of them side by side, and parts of the steps.
struct ProductCut {
  int steps, part_steps;
  unsigned column_tiles;
};

/// One tile of the result, of one part of the steps. All threads of a block call it.
template <typename Numbers, typename Shape, typename A, typename B, typename Result>
__device__ void multiply_tile(const A& a, const B& b, const Result& result, const ProductCut& cut, unsigned tile,
                              unsigned part, typename Numbers::Element* shared) {
  const WarpPlace<Shape> at;
  const int first_row = static_cast<int>(tile / cut.column_tiles) * Shape::kRows;
  const int first_column = static_cast<int>(tile % cut.column_tiles) * Shape::kColumns;
  const int first_step = static_cast<int>(part) * cut.part_steps;
  const int mine = cut.steps - first_step < cut.part_steps ? cut.steps - first_step : cut.part_steps;
  Accumulators<Shape> accumulators;
  run_main_loop<Numbers>(a, b, first_row, first_column, first_step, mine, shared, at, accumulators);
  result.write_tile(accumulators, at, first_row, first_column, shared);
}

/// One block per tile of the result and, with blockIdx.y, part of the steps.
template <TensorCoreNumbers Numbers, typename Shape, typename A, typename B,
          TileResult<typename Numbers::Element, Shape> Result>
__global__ void __launch_bounds__(Shape::kThreads, Shape::kBlocksAtOnce)
    implicit_gemm(A a, B b, Result result, ProductCut cut) {
  TANDEM_DYNAMIC_SHARED(typename Numbers::Element, shared);
  multiply_tile<Numbers, Shape>(a, b, result, cut, blockIdx.x, blockIdx.y, shared);
}

/// How much work there is: sizes of the result, the depth of its sums, and into how many parts of how many steps that
/// is cut.
struct ProductSize {
  std::int64_t rows, columns, depth;
  std::int64_t parts = 1;
  std::int64_t part_steps = 0;  // 0: all

  /// For tiles of a shape, and how many of them there are.
  /// @{
  template <typename Numbers, typename Shape>
  ProductCut cut() const {
    const std::int64_t steps = tiles_along(depth, kStepDepth<typename Numbers::Element>);
    return {static_cast<int>(steps), static_cast<int>(part_steps == 0 ? steps : part_steps),
            static_cast<unsigned>(tiles_along(columns, Shape::kColumns))};
  }
  template <typename Shape>
  unsigned tiles() const {
    return static_cast<unsigned>(tiles_along(rows, Shape::kRows) * tiles_along(columns, Shape::kColumns));
  }
  /// @}
};

/// Calls `visit(TypeTag<T>{})` with the C++ type of f16 or bf16.
template <typename Visitor>
void dispatch_halves(DType dtype, std::string_view op, Visitor&& visit) {
  if (dtype == DType::f16) return visit(TypeTag<Half>{});
  if (dtype == DType::bf16) return visit(TypeTag<BFloat16>{});
  fail("{}: tensor cores multiply f16 and bf16 here, got {}", op, name_of(dtype));
}

/// Calls `visit(Numbers{})` with how tensor cores multiply numbers of a dtype: f32 as float32_products() says.
template <typename Visitor>
void dispatch_numbers(DType dtype, std::string_view op, Visitor&& visit) {
  if (dtype == DType::f16) return visit(Halves<Half>{});
  if (dtype == DType::bf16) return visit(Halves<BFloat16>{});
  require(dtype == DType::f32, "{}: tensor cores multiply f16, bf16 and f32 here, got {}", op, name_of(dtype));
  if (float32_products() == Float32Products::tf32) return visit(Tf32{});
  visit(SplitTf32{});
}

template <typename Numbers, typename Shape, typename A, typename B, typename Result>
void launch_product(const ProductSize& size, const A& a, const B& b, const Result& result, cudaStream_t stream) {
  const dim3 grid(size.tiles<Shape>(), static_cast<unsigned>(size.parts));
  launch(implicit_gemm<Numbers, Shape, A, B, Result>, {grid, Shape::kThreads, Shape::kSharedBytes}, stream, a, b,
         result, size.cut<Numbers, Shape>());
}

}  // namespace tandem::kernels::cuda::implicit_gemm
