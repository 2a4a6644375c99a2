// The forward pass that also leaves the moments of each tile's rows.
#include "kernels/conv/implicit_gemm/forward.cuh"
#include "kernels/conv/implicit_gemm/moments_result.cuh"
#include "kernels/conv/implicit_gemm/product.cuh"

namespace tandem::kernels::cuda::implicit_gemm {

std::int64_t moment_parts(std::optional<Tile> tile, const ConvGeometry& g) {
  const std::int64_t rows = g.n * g.p * g.q;
  return tiles_along(rows, rows_of(tile.value_or(choose_tile(rows, g.k))));
}

void forward_moments_by(std::optional<Tile> tile, const ConvGeometry& g, const Tensor& x, const Tensor& w,
                        const Tensor& bias, const Tensor& y, const Tensor& moments) {
  require_no_obstacle("conv2d_forward_with_moments", g, y.dtype(), {x, w, bias, y});
  dispatch_numbers(y.dtype(), "conv2d_forward_with_moments", [&]<typename Numbers>(Numbers) {
    using T = typename Numbers::Element;
    const ForwardProduct<T> product(g, x, w, {.bias = bias}, y);
    const MomentsResult<T> result{y.data<T>(),         product.result.rows,    product.result.columns,
                                  product.result.bias, moments.data<double>(), static_cast<int>(moment_parts(tile, g))};
    const ProductSize size{.rows = g.n * g.p * g.q, .columns = g.k, .depth = g.r * g.s * g.c};
    with_tile(tile.value_or(choose_tile(size.rows, g.k)), [&]<typename Shape>(Shape) {
      launch_product<Numbers, Shape>(size, product.patches, product.weights, result, tandem::cuda::current_stream(y));
    });
  });
}

}  // namespace tandem::kernels::cuda::implicit_gemm
