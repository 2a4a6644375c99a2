// The input's gradient as tiled matrix products, one per phase: patches of the masked gradient times transposed
// weights.
#include "tandem/kernels/conv/tile/input_phase.cuh"
#include "tandem/kernels/conv/tile/tile.h"
#include "tandem/kernels/device/dispatch.h"
#include "tandem/kernels/gemm/product.cuh"

namespace tandem::kernels::cuda::tile {

void backward_input(const ConvGeometry& g, const Tensor& grad_y, const Tensor& mask, const Tensor& w,
                    const Out& grad_x) {
  device::dispatch(grad_x.dtype(), "conv2d_backward_input", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const Gate<T> gate{.bits = data_or_null<std::uint8_t>(mask)};
    for (std::int64_t row = 0; row < std::min(g.stride_h, g.h); ++row) {
      for (std::int64_t column = 0; column < std::min(g.stride_w, g.w); ++column) {
        const InputPhase phase(g, row, column);
        const std::int64_t pixels = phase.pixels(g.n);
        const GradientPatches<T> patches{grad_y.data<T>(), gate, phase, pixels, g.k};
        const TransposedWeights<T> weights{w.data<T>(), phase};
        const PhaseResult<T> result{{.data = grad_x.data<T>(), .rows = pixels, .columns = g.c, .row_stride = g.c},
                                    phase};
        const bool vectors = g.k % 4 == 0 && g.c % 4 == 0 && starts_fours(patches.grad_y) && starts_fours(weights.w);
        multiply(patches, weights, result, phase.taps() * g.k, vectors, grad_x);
      }
    }
  });
}

}  // namespace tandem::kernels::cuda::tile
