// The forward pass that ends in bias, ReLU and the maxima of 2 x 2 outputs: only those are written. Four neighbouring
// rows of a tile are a window.
#include "tandem/kernels/conv/implicit_gemm/forward.cuh"
#include "tandem/kernels/conv/implicit_gemm/implicit_gemm.h"
#include "tandem/kernels/conv/implicit_gemm/pooled_result.cuh"
#include "tandem/kernels/conv/implicit_gemm/product.cuh"

namespace tandem::kernels::cuda::implicit_gemm {
namespace {

template <typename Numbers>
void run(const ConvGeometry& g, Tile tile, const Tensor& x, const Tensor& w, const Tensor& bias,
         const PooledOutput& to) {
  using T = typename Numbers::Element;
  const PatchRows<T, kWindow> patches(x.data<T>(), patches_down(g), patches_across(g), g.c, g.n);
  const DenseOperand<T, true> weights{w.data<T>(), static_cast<int>(g.k), static_cast<int>(g.r * g.s * g.c)};
  const PooledResult<T> result{to.y.data<T>(),
                               patches.rows / kWindowRows,
                               weights.rows,
                               data_or_null<T>(bias),
                               data_or_null<std::uint8_t>(to.positions),
                               data_or_null<std::uint8_t>(to.mask)};
  const ProductSize size{.rows = patches.rows, .columns = g.k, .depth = g.r * g.s * g.c};
  with_tile(tile, [&]<typename Shape>(Shape) {
    launch_product<Numbers, Shape>(size, patches, weights, result, tandem::cuda::current_stream(to.y.device()));
  });
}

}  // namespace

void forward_pool_by(Tile tile, const ConvGeometry& g, const Tensor& x, const Tensor& w, const Tensor& bias,
                     const PooledOutput& to) {
  require_no_obstacle("conv_bias_relu_pool_forward", obstacle, PassKind::forward_pool, g,
                      operands_of(to.y.dtype(), x, w, bias, to.y, to.positions));
  dispatch_numbers(to.y.dtype(), "conv_bias_relu_pool_forward",
                   [&]<typename Numbers>(Numbers) { run<Numbers>(g, tile, x, w, bias, to); });
}

void forward_pool(const ConvGeometry& g, const Tensor& x, const Tensor& w, const Tensor& bias, const PooledOutput& to) {
  forward_pool_by(choose_tile(g.n * g.p * g.q, g.k), g, x, w, bias, to);
}

}  // namespace tandem::kernels::cuda::implicit_gemm
