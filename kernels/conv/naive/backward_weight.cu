// The weights' gradient with one thread per weight and part of the pixels; a second launch adds the parts in order.
#include "tandem/core/memory.h"
#include "tandem/kernels/conv/naive/naive.h"
#include "tandem/kernels/device/dispatch.h"
#include "tandem/kernels/device/half.h"
#include "tandem/kernels/gemm/product.cuh"

#include <algorithm>
#include <array>

namespace tandem::kernels::cuda::naive {
namespace {

constexpr std::int64_t kLeastPart = 64;  // output pixels
constexpr std::int64_t kMostParts = 256;

/// `grad_w` is [R, S, K, C / groups]: neighbouring threads, which have neighbouring channels, read neighbours of x and,
/// with one channel per group, of grad_y.
template <typename T>
__global__ void __launch_bounds__(device::kThreadsPerBlock)
    backward_weight_naive(ConvGeometry g, const T* x, const T* grad_y, Gate<T> gate, std::int64_t part_pixels,
                          MatrixResult<T> grad_w) {
  const std::int64_t group_c = g.c / g.groups, group_k = g.k / g.groups, pixels = g.n * g.p * g.q;
  const std::int64_t begin = blockIdx.y * part_pixels;
  const std::int64_t end = begin + part_pixels < pixels ? begin + part_pixels : pixels;
  for (std::int64_t i = device::thread_in_grid(); i < grad_w.columns; i += device::threads_in_grid()) {
    const std::int64_t k = i / group_c % g.k, tap = i / group_c / g.k;
    const std::int64_t c = k / group_k * group_c + i % group_c;
    const std::int64_t top = tap / g.s * g.dilation_h - g.pad_h, left = tap % g.s * g.dilation_w - g.pad_w;
    float sum = 0.0f;
    for (std::int64_t pixel = begin; pixel < end; ++pixel) {
      const std::int64_t q = pixel % g.q, p = pixel / g.q % g.p, n = pixel / g.q / g.p;
      const std::int64_t row = p * g.stride_h + top, column = q * g.stride_w + left;
      if (row < 0 || row >= g.h || column < 0 || column >= g.w) continue;
      device::Vector<float, 1> gradient = load_floats<1>(grad_y + pixel * g.k + k);
      gate.apply(gradient, pixel * g.k + k);
      sum += gradient[0] * device::to_float(x[((n * g.h + row) * g.w + column) * g.c + c]);
    }
    grad_w.template store<1>(0, i, {sum});
  }
}

}  // namespace

void backward_weight(const ConvGeometry& g, const Tensor& x, const Tensor& grad_y, const Tensor& mask,
                     const Out& grad_w) {
  device::dispatch(grad_w.dtype(), "conv2d_backward_weight", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const std::int64_t size = grad_w.numel(), pixels = g.n * g.p * g.q;
    if (size == 0) return;
    const std::int64_t part_pixels = std::max(kLeastPart, (pixels + kMostParts - 1) / kMostParts);
    const std::int64_t parts = std::max<std::int64_t>((pixels + part_pixels - 1) / part_pixels, 1);
    const MemoryTagScope tag_scope(MemoryTag::workspace);
    const Out transposed(
        Tensor::empty({g.r, g.s, g.k, g.group_c()}, {.dtype = grad_w.dtype(), .device = grad_w.device()}));
    const MatrixResult<T> result{.data = transposed.data<T>(), .rows = 1, .columns = size, .row_stride = size};
    const dim3 grid(device::blocks_for(size, device::kThreadsPerBlock), static_cast<unsigned>(parts));
    const cudaStream_t stream = tandem::cuda::current_stream(grad_w.device());
    const auto sum_parts = [&](const MatrixResult<T>& to) {
      launch(backward_weight_naive<T>, {grid, device::kThreadsPerBlock}, stream, g, x.data<T>(), grad_y.data<T>(),
             Gate<T>{.bits = data_or_null<std::uint8_t>(mask)}, part_pixels, to);
    };
    if (parts == 1) {
      sum_parts(result);
    } else {
      const Out sums(Tensor::empty({parts, size}, {.device = grad_w.device()}));
      MatrixResult<T> to_parts = result;
      to_parts.parts = sums.data<float>();
      sum_parts(to_parts);
      launch(add_parts<MatrixResult<T>>, {grid.x, device::kThreadsPerBlock}, stream, sums.data<float>(), parts, result);
    }
    grad_w.tensor().copy_from(transposed.tensor().permute(std::array{2, 3, 0, 1}));
  });
}

}  // namespace tandem::kernels::cuda::naive
