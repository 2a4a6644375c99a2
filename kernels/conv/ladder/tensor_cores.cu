// Fourth step of the ladder: warps multiply on tensor cores, and wait for each step's operands before they do.
#include "tandem/kernels/conv/implicit_gemm/forward.cuh"
#include "tandem/kernels/conv/implicit_gemm/implicit_gemm.h"
#include "tandem/kernels/conv/implicit_gemm/input_product.cuh"
#include "tandem/kernels/conv/implicit_gemm/product.cuh"
#include "tandem/kernels/conv/implicit_gemm/weight_product.cuh"
#include "tandem/kernels/conv/ladder/ladder.h"
#include "tandem/kernels/device/atoms.h"

namespace tandem::kernels::cuda::ladder::tensor_cores {
namespace {

using namespace implicit_gemm;
using Shape = TileShape<64, 64, 32, 32, 1>;

template <typename T, typename A, typename B, typename Result>
__global__ void __launch_bounds__(Shape::kThreads)
    tensor_cores_product(A a, B b, Result result, int steps, unsigned column_tiles) {
  TANDEM_DYNAMIC_SHARED(T, a_tile);
  T* const b_tile = a_tile + Shape::kRows * kStepDepth<T>;
  const WarpPlace<Shape> at;
  const int first_row = static_cast<int>(blockIdx.x / column_tiles) * Shape::kRows;
  const int first_column = static_cast<int>(blockIdx.x % column_tiles) * Shape::kColumns;
  typename A::template Loader<Shape::kRows, Shape::kThreads> from_a(a, first_row, 0);
  typename B::template Loader<Shape::kColumns, Shape::kThreads> from_b(b, first_column, 0);
  Accumulators<Shape> accumulators;
  for (int step = 0; step < steps; ++step) {
    from_a.copy(a_tile);
    from_b.copy(b_tile);
    device::cp_async_commit();
    device::cp_async_wait<0>();
    __syncthreads();
    multiply_step<Halves<T>, Shape, TileLayout<T, Shape::kRows, A::kAlongDepth>,
                  TileLayout<T, Shape::kColumns, B::kAlongDepth>>(a_tile, b_tile, at, accumulators);
    __syncthreads();
  }
  result.write_tile(accumulators, at, first_row, first_column, a_tile);
}

template <typename T, typename A, typename B, typename Result>
void multiply(const A& a, const B& b, const Result& result, std::int64_t depth, const Tensor& on) {
  const auto column_tiles = static_cast<unsigned>(tiles_along(result.columns, Shape::kColumns));
  const auto row_tiles = static_cast<unsigned>(tiles_along(result.rows, Shape::kRows));
  launch(tensor_cores_product<T, A, B, Result>, {row_tiles * column_tiles, Shape::kThreads, Shape::kSharedBytes},
         tandem::cuda::current_stream(on), a, b, result, static_cast<int>(tiles_along(depth, kStepDepth<T>)),
         column_tiles);
}

}  // namespace

void forward(const ConvGeometry& g, const Tensor& x, const Tensor& w, const Epilogue& epilogue, const Out& y) {
  require_no_obstacle("conv2d_forward", obstacle, PassKind::forward, g, operands_of(y.dtype(), x, w, epilogue.bias, y));
  dispatch_halves(y.dtype(), "conv2d_forward", [&]<typename T>(TypeTag<T>) {
    const ForwardProduct<T> product(g, x, w, epilogue, y);
    multiply<T>(product.patches, product.weights, product.result, g.r * g.s * g.c, y);
  });
}

void backward_input(const ConvGeometry& g, const Tensor& grad_y, const Tensor& mask, const Tensor& w,
                    const Out& grad_x) {
  require_no_obstacle("conv2d_backward_input", obstacle, PassKind::backward_input, g,
                      operands_of(grad_x.dtype(), grad_y, w, grad_x));
  const Tensor gradient = masked_gradient(grad_y, mask);
  dispatch_halves(grad_x.dtype(), "conv2d_backward_input", [&]<typename T>(TypeTag<T>) {
    for (std::int64_t row = 0; row < std::min(g.stride_h, g.h); ++row) {
      for (std::int64_t column = 0; column < std::min(g.stride_w, g.w); ++column) {
        const tile::InputPhase phase(g, row, column);
        const InputProduct<T> product(g, phase, gradient, w, grad_x, nullptr, nullptr);
        multiply<T>(product.patches, product.weights, product.result, phase.taps() * g.k, grad_x);
      }
    }
  });
}

void backward_weight(const ConvGeometry& g, const Tensor& x, const Tensor& grad_y, const Tensor& mask,
                     const Out& grad_w) {
  require_no_obstacle("conv2d_backward_weight", obstacle, PassKind::backward_weight, g,
                      operands_of(grad_w.dtype(), x, grad_y, grad_w));
  const Tensor gradient = masked_gradient(grad_y, mask);
  dispatch_halves(grad_w.dtype(), "conv2d_backward_weight", [&]<typename T>(TypeTag<T>) {
    const WeightProduct<T> product(g, x, gradient, grad_w, nullptr);
    multiply<T>(product.gradient, product.patches, product.result, g.n * g.p * g.q, grad_w);
  });
}

}  // namespace tandem::kernels::cuda::ladder::tensor_cores
