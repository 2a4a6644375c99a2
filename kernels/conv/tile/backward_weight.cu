// The weights' gradient as a tiled matrix product over all output pixels, mostly in parts that are added in order.
#include "tandem/kernels/conv/tile/patches.cuh"
#include "tandem/kernels/conv/tile/tile.h"
#include "tandem/kernels/device/dispatch.h"
#include "tandem/kernels/gemm/product.cuh"

namespace tandem::kernels::cuda::tile {

void backward_weight(const ConvGeometry& g, const Tensor& x, const Tensor& grad_y, const Tensor& mask,
                     const Out& grad_w) {
  device::dispatch(grad_w.dtype(), "conv2d_backward_weight", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const std::int64_t pixels = g.n * g.p * g.q, columns = g.r * g.s * g.c;
    const Gate<T> gate{.bits = data_or_null<std::uint8_t>(mask)};
    const Matrix<T> gradient{grad_y.data<T>(), g.k, 1, g.k, gate};
    const PatchColumns<T> patches{x.data<T>(), TileGeometry(g), columns};
    const MatrixResult<T> result{.data = grad_w.data<T>(), .rows = g.k, .columns = columns, .row_stride = columns};
    const bool vectors = g.c % 4 == 0 && starts_fours(patches.x) && gradient.takes_vectors(pixels);
    multiply(gradient, patches, result, pixels, vectors, grad_w);
  });
}

}  // namespace tandem::kernels::cuda::tile
