// The input's gradient with one thread per element: each looks for the outputs that its pixel went into.
#include "tandem/core/cuda/current_stream.h"
#include "tandem/core/cuda/launch.h"
#include "tandem/kernels/conv/naive/naive.h"
#include "tandem/kernels/conv/naive/position.cuh"
#include "tandem/kernels/dense_operand.h"
#include "tandem/kernels/device/dispatch.h"
#include "tandem/kernels/device/grid.h"
#include "tandem/kernels/gemm/gate.cuh"

#include <array>

namespace tandem::kernels::cuda::naive {
namespace {

/// The output row (or column) that `input` goes into by a tap `offset` away from the window's start; -1 if there is
/// none.
__device__ std::int64_t output_of(std::int64_t input, std::int64_t offset, std::int64_t stride, std::int64_t outputs) {
  const std::int64_t start = input - offset, output = start / stride;
  return start >= 0 && output * stride == start && output < outputs ? output : -1;
}

/// `w` is [R, S, K, C / groups]: neighbouring threads, which have neighbouring input channels, read neighbours.
template <typename T>
__global__ void backward_input_naive(ConvGeometry g, const T* grad_y, Gate<T> gate, const T* w, T* grad_x) {
  const std::int64_t count = g.n * g.h * g.w * g.c;
  const std::int64_t group_c = g.c / g.groups, group_k = g.k / g.groups;
  for (std::int64_t i = device::thread_in_grid(); i < count; i += device::threads_in_grid()) {
    const Position at(i, g.h, g.w, g.c);
    const std::int64_t first_k = at.channel / group_c * group_k, c = at.channel % group_c;
    float sum = 0.0f;
    for (std::int64_t r = 0; r < g.r; ++r) {
      const std::int64_t p = output_of(at.row, r * g.dilation_h - g.pad_h, g.stride_h, g.p);
      if (p < 0) continue;
      for (std::int64_t s = 0; s < g.s; ++s) {
        const std::int64_t q = output_of(at.column, s * g.dilation_w - g.pad_w, g.stride_w, g.q);
        if (q < 0) continue;
        const std::int64_t pixel = (at.image * g.p + p) * g.q + q;
        for (std::int64_t k = first_k; k < first_k + group_k; ++k) {
          device::Vector<float, 1> gradient = load_floats<1>(grad_y + pixel * g.k + k);
          gate.apply(gradient, pixel * g.k + k);
          sum += gradient[0] * device::to_float(w[((r * g.s + s) * g.k + k) * group_c + c]);
        }
      }
    }
    grad_x[i] = device::from_float<T>(sum);
  }
}

}  // namespace

void backward_input(const ConvGeometry& g, const Tensor& grad_y, const Tensor& mask, const Tensor& w,
                    const Out& grad_x) {
  device::dispatch(grad_x.dtype(), "conv2d_backward_input", [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (grad_x.numel() == 0) return;
    const Tensor transposed = dense_input(w.permute(std::array{2, 3, 0, 1}), Layout::row_major);
    const Gate<T> gate{.bits = data_or_null<std::uint8_t>(mask)};
    launch(backward_input_naive<T>,
           {device::blocks_for(grad_x.numel(), device::kThreadsPerBlock, 1 << 20), device::kThreadsPerBlock},
           tandem::cuda::current_stream(grad_x.device()), g, grad_y.data<T>(), gate, transposed.data<T>(),
           grad_x.data<T>());
  });
}

}  // namespace tandem::kernels::cuda::naive
