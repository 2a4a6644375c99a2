// Fourth step of the ladder: warps multiply on tensor cores, and wait for each step's operands before they do.
#include "kernels/conv/implicit_gemm/forward.cuh"
#include "kernels/conv/implicit_gemm/product.cuh"
#include "kernels/conv/ladder/ladder.h"

namespace tandem::kernels::cuda::ladder {
namespace {

using namespace implicit_gemm;
using Shape = TileShape<64, 64, 32, 32, 1>;

template <typename T>
__global__ void __launch_bounds__(Shape::kThreads)
    tensor_cores_forward(ForwardProduct<T> product, int steps, unsigned column_tiles) {
  using Patches = PatchRows<T>;
  using Weights = DenseOperand<T, true>;
  DYN_SHARED(T, x_tile);
  T* const w_tile = x_tile + Shape::kRows * kStepDepth<T>;
  const WarpPlace<Shape> at;
  const int first_row = static_cast<int>(blockIdx.x / column_tiles) * Shape::kRows;
  const int first_column = static_cast<int>(blockIdx.x % column_tiles) * Shape::kColumns;
  typename Patches::template Loader<Shape::kRows, Shape::kThreads> from_x(product.patches, first_row, 0);
  typename Weights::template Loader<Shape::kColumns, Shape::kThreads> from_w(product.weights, first_column, 0);
  Sums<Shape> sums;
  for (int step = 0; step < steps; ++step) {
    from_x.copy(x_tile);
    from_w.copy(w_tile);
    device::cp_async_commit();
    device::cp_async_wait<0>();
    __syncthreads();
    multiply_step<Halves<T>, Shape, TileLayout<T, Shape::kRows, Patches::kAlongDepth>,
                  TileLayout<T, Shape::kColumns, Weights::kAlongDepth>>(x_tile, w_tile, at, sums);
    __syncthreads();
  }
  product.result.take(sums, at, first_row, first_column, x_tile);
}

}  // namespace

void tensor_cores(const ConvGeometry& g, const Tensor& x, const Tensor& w, const Epilogue& epilogue, const Tensor& y) {
  require_no_obstacle("conv2d_forward", g, y.dtype(), {x, w, epilogue.bias, y});
  dispatch_halves(y.dtype(), "conv2d_forward", [&]<typename T>(TypeTag<T>) {
    const auto column_tiles = static_cast<unsigned>(tiles_along(g.k, Shape::kColumns));
    const auto row_tiles = static_cast<unsigned>(tiles_along(g.n * g.p * g.q, Shape::kRows));
    launch(tensor_cores_forward<T>, {row_tiles * column_tiles, Shape::kThreads, Shape::kSharedBytes},
           tandem::cuda::current_stream(y), ForwardProduct<T>(g, x, w, epilogue, y),
           static_cast<int>(tiles_along(g.r * g.s * g.c, kStepDepth<T>)), column_tiles);
  });
}

}  // namespace tandem::kernels::cuda::ladder
