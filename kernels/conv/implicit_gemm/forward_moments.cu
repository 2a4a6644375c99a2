// The forward pass that also leaves the moments of each tile's rows.
#include "tandem/kernels/conv/implicit_gemm/forward.cuh"
#include "tandem/kernels/conv/implicit_gemm/implicit_gemm.h"
#include "tandem/kernels/conv/implicit_gemm/moments_result.cuh"
#include "tandem/kernels/conv/implicit_gemm/product.cuh"

namespace tandem::kernels::cuda::implicit_gemm {

std::int64_t moment_parts_by(Tile tile, const ConvGeometry& g) { return tiles_along(g.n * g.p * g.q, rows_of(tile)); }

std::int64_t moment_parts(const ConvGeometry& g) { return moment_parts_by(choose_tile(g.n * g.p * g.q, g.k), g); }

void forward_moments_by(Tile tile, const ConvGeometry& g, const Tensor& x, const Tensor& w, const Tensor& bias,
                        const Out& y, const Out& moments) {
  require_no_obstacle("conv2d_forward_with_moments", obstacle, PassKind::forward_moments, g,
                      operands_of(y.dtype(), x, w, bias, y));
  dispatch_numbers(y.dtype(), "conv2d_forward_with_moments", [&]<typename Numbers>(Numbers) {
    using T = typename Numbers::Element;
    const ForwardProduct<T> product(g, x, w, {.bias = bias}, y);
    const MomentsResult<T> result{
        y.data<T>(),         product.result.rows,    product.result.columns,
        product.result.bias, moments.data<double>(), static_cast<int>(moment_parts_by(tile, g))};
    const ProductSize size{.rows = g.n * g.p * g.q, .columns = g.k, .depth = g.r * g.s * g.c};
    with_tile(tile, [&]<typename Shape>(Shape) {
      launch_product<Numbers, Shape>(size, product.patches, product.weights, result,
                                     tandem::cuda::current_stream(y.device()));
    });
  });
}

void forward_moments(const ConvGeometry& g, const Tensor& x, const Tensor& w, const Tensor& bias, const Out& y,
                     const Out& moments) {
  forward_moments_by(choose_tile(g.n * g.p * g.q, g.k), g, x, w, bias, y, moments);
}

}  // namespace tandem::kernels::cuda::implicit_gemm
