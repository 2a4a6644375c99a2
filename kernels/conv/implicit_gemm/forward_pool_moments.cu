// The forward pass that ends in bias and the maxima of 2 x 2 outputs, and leaves the moments of each tile's maxima.
#include "tandem/kernels/conv/implicit_gemm/forward.cuh"
#include "tandem/kernels/conv/implicit_gemm/implicit_gemm.h"
#include "tandem/kernels/conv/implicit_gemm/pooled_moments_result.cuh"
#include "tandem/kernels/conv/implicit_gemm/product.cuh"

namespace tandem::kernels::cuda::implicit_gemm {
namespace {

/// Outputs of whole windows.
std::int64_t rows_of_windows(const ConvGeometry& g) {
  const ConvGeometry whole = whole_windows(g);
  return whole.n * whole.p * whole.q;
}

template <typename Numbers>
void run(const ConvGeometry& g, Tile tile, const Tensor& x, const Tensor& w, const Tensor& bias,
         const PooledMomentsOutput& to) {
  using T = typename Numbers::Element;
  const PatchRows<T, kWindow> patches(x.data<T>(), patches_down(g), patches_across(g), g.c, g.n);
  const DenseOperand<T, true> weights{w.data<T>(), static_cast<int>(g.k), static_cast<int>(g.r * g.s * g.c)};
  const PooledMomentsResult<T> result{to.y.data<T>(),
                                      patches.rows / kWindowRows,
                                      weights.rows,
                                      data_or_null<T>(bias),
                                      data_or_null<std::uint8_t>(to.positions),
                                      data_or_null<double>(to.moments),
                                      static_cast<int>(pool_moment_parts_by(tile, g))};
  const ProductSize size{.rows = patches.rows, .columns = g.k, .depth = g.r * g.s * g.c};
  with_tile(tile, [&]<typename Shape>(Shape) {
    launch_product<Numbers, Shape>(size, patches, weights, result, tandem::cuda::current_stream(to.y.device()));
  });
}

}  // namespace

std::int64_t pool_moment_parts_by(Tile tile, const ConvGeometry& g) {
  return tiles_along(rows_of_windows(g), rows_of(tile));
}

std::int64_t pool_moment_parts(const ConvGeometry& g) {
  return pool_moment_parts_by(choose_tile(rows_of_windows(g), g.k), g);
}

void forward_pool_moments_by(Tile tile, const ConvGeometry& g, const Tensor& x, const Tensor& w, const Tensor& bias,
                             const PooledMomentsOutput& to) {
  require_no_obstacle("conv2d_pool_forward", obstacle, PassKind::forward_pool_moments, g,
                      operands_of(to.y.dtype(), x, w, bias, to.y, to.positions));
  dispatch_numbers(to.y.dtype(), "conv2d_pool_forward",
                   [&]<typename Numbers>(Numbers) { run<Numbers>(g, tile, x, w, bias, to); });
}

void forward_pool_moments(const ConvGeometry& g, const Tensor& x, const Tensor& w, const Tensor& bias,
                          const PooledMomentsOutput& to) {
  forward_pool_moments_by(choose_tile(rows_of_windows(g), g.k), g, x, w, bias, to);
}

}  // namespace tandem::kernels::cuda::implicit_gemm
