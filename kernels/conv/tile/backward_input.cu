// The input's gradient as a tiled matrix product: patches of the masked gradient times turned weights.
#include "kernels/conv/implementations.h"
#include "kernels/conv/tile/patches.cuh"
#include "kernels/device/dispatch.h"
#include "kernels/gemm/product.cuh"

namespace tandem::kernels::cuda::tile {

void backward_input(const ConvGeometry& g, const Tensor& grad_y, const Tensor& mask, const Tensor& w,
                    const Tensor& grad_x) {
  device::dispatch(grad_x.dtype(), "conv2d_backward_input", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const std::int64_t pixels = g.n * g.h * g.w, depth = g.r * g.s * g.k;
    const TileGeometry geometry(g);
    const Gate<T> gate{.bits = data_or_null<std::uint8_t>(mask)};
    const GradientPatches<T> patches{grad_y.data<T>(), gate, geometry, pixels};
    const TurnedWeights<T> weights{w.data<T>(), geometry};
    const MatrixResult<T> result{.data = grad_x.data<T>(), .rows = pixels, .columns = g.c, .row_stride = g.c};
    const bool vectors = g.k % 4 == 0 && g.c % 4 == 0 && starts_fours(patches.grad_y) && starts_fours(weights.w);
    multiply(patches, weights, result, depth, vectors, grad_x);
  });
}

}  // namespace tandem::kernels::cuda::tile
