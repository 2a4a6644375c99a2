// Convolution on tensor cores: patches times weights, with bias, ReLU and its mask applied on the way out.
#include "tandem/kernels/conv/implicit_gemm/forward.cuh"
#include "tandem/kernels/conv/implicit_gemm/implicit_gemm.h"
#include "tandem/kernels/conv/implicit_gemm/product.cuh"

namespace tandem::kernels::cuda::implicit_gemm {

void forward_by(Tile tile, const ConvGeometry& g, const Tensor& x, const Tensor& w, const Epilogue& epilogue,
                const Out& y) {
  require_no_obstacle("conv2d_forward", obstacle, PassKind::forward, g, operands_of(y.dtype(), x, w, epilogue.bias, y));
  dispatch_numbers(y.dtype(), "conv2d_forward", [&]<typename Numbers>(Numbers) {
    const ForwardProduct<typename Numbers::Element> product(g, x, w, epilogue, y);
    const ProductSize size{.rows = g.n * g.p * g.q, .columns = g.k, .depth = g.r * g.s * g.c};
    with_tile(tile, [&]<typename Shape>(Shape) {
      launch_product<Numbers, Shape>(size, product.patches, product.weights, product.result,
                                     tandem::cuda::current_stream(y.device()));
    });
  });
}

void forward(const ConvGeometry& g, const Tensor& x, const Tensor& w, const Epilogue& epilogue, const Out& y) {
  forward_by(choose_tile(g.n * g.p * g.q, g.k), g, x, w, epilogue, y);
}

}  // namespace tandem::kernels::cuda::implicit_gemm
