// Padding on CUDA. Only the gradient of reflection computes anything: the rest moves pixels.
#include "tandem/kernels/augment/pad2d_implementations.h"

#include "tandem/core/cuda/current_stream.h"
#include "tandem/core/cuda/launch.h"
#include "tandem/kernels/augment/gather_pixels.h"
#include "tandem/kernels/augment/image_loop.h"
#include "tandem/kernels/device/dispatch.h"
#include "tandem/kernels/device/grid.h"
#include "tandem/kernels/device/half.h"
#include "tandem/kernels/device/nest_offsets.h"
#include "tandem/kernels/device/vector.h"

namespace tandem::kernels::cuda {

namespace {

/// One axis with its padding.
struct PaddedAxis {
  std::int64_t size, before, after, step;

  /// Offset of the padded axis' element that shows `position` directly (copy 0) or in the mirror at the front (1) or at
  /// the back (2); -1 if there is none.
  __device__ std::int64_t offset(int copy, std::int64_t position) const {
    std::int64_t at = position;
    if (copy == 1) {
      if (position == 0) return -1;
      at = -position;
    } else if (copy == 2) {
      if (position == size - 1) return -1;
      at = 2 * (size - 1) - position;
    }
    return at >= -before && at < size + after ? (at + before) * step : -1;
  }
};

/// Sums up, for one vector of channels per thread and step, what a pixel was copied to: 9 places at most.
template <int kWidth, typename T>
__global__ void fold_reflections(const T* grad_out, T* grad_x, device::Nest<4> nest, std::int64_t first_row,
                                 std::int64_t first_column, PaddedAxis rows, PaddedAxis columns) {
  const unsigned step = gridDim.x * blockDim.x;
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < nest.count; i += step) {
    const auto at = device::offsets_of(nest, i);
    float sums[kWidth] = {};
    for (int row_copy = 0; row_copy < 3; ++row_copy) {
      const std::int64_t row = rows.offset(row_copy, first_row + at.offset[2]);
      for (int column_copy = 0; column_copy < 3; ++column_copy) {
        const std::int64_t column = columns.offset(column_copy, first_column + at.offset[3]);
        if (row < 0 || column < 0) continue;
        const auto grad = device::load_vector<kWidth>(grad_out + (at.offset[1] + row + column) * kWidth);
#pragma unroll
        for (int k = 0; k < kWidth; ++k) sums[k] += device::to_float(grad[k]);
      }
    }
    device::Vector<T, kWidth> result;
#pragma unroll
    for (int k = 0; k < kWidth; ++k) result[k] = device::from_float<T>(sums[k]);
    device::store_vector(grad_x + at.offset[0] * kWidth, result);
  }
}

}  // namespace

void pad2d(const Tensor& x, const Pad2dOptions& options, const Out& out) {
  gather_pixels("pad2d", x, {.top = options.top, .left = options.left, .reflect = options.mode == PadMode::reflect},
                out);
}

void pad2d_backward(const Tensor& grad_out, const Pad2dOptions& options, const Out& grad_x) {
  constexpr std::string_view kOp = "pad2d_backward";
  if (options.mode == PadMode::zero) {
    return gather_pixels(kOp, grad_out, {.top = -options.top, .left = -options.left}, grad_x);
  }
  device::dispatch(grad_x.dtype(), kOp, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (grad_x.numel() == 0) return;
    const cudaStream_t stream = tandem::cuda::current_stream(grad_x);
    const ImageLoop loop(grad_x, grad_out);
    const PaddedAxis rows{grad_x.size(2), options.top, options.bottom, loop.row_step};
    const PaddedAxis columns{grad_x.size(3), options.left, options.right, loop.column_step};
    const auto kernel = loop.width == 1 ? fold_reflections<1, T> : fold_reflections<device::kVectorWidth<T>, T>;
    loop.nest.for_each_part([&](const device::Nest<4>& part, const auto& starts) {
      launch(kernel, {device::blocks_for(part.count, device::kThreadsPerBlock), device::kThreadsPerBlock}, stream,
             grad_out.data<T>() + starts[1] * loop.width, grad_x.data<T>() + starts[0] * loop.width, part, starts[2],
             starts[3], rows, columns);
    });
  });
}

}  // namespace tandem::kernels::cuda
