// Average pooling: checks, and the choice of implementation.
#include "tandem/kernels/pool/avg_pool2d.h"
#include "tandem/kernels/cuda_choice.h"
#include "tandem/kernels/pool/avg_pool2d_implementations.h"
#include "tandem/kernels/traffic.h"

namespace tandem::kernels {

namespace {

void check(std::string_view op, const Tensor& x, const Pool2dOptions& options, const Tensor& y) {
  const Shape expected = pool2d_output_shape(op, x.shape(), options);
  require(is_floating(x.dtype()) && y.dtype() == x.dtype() && y.shape() == expected,
          "{}: image {} pools to shape {} of the same floating dtype, got {}", op, describe(x), to_string(expected),
          describe(y));
  require_one_device(op, x, y);
}

}  // namespace

double avg_pool2d_weight(std::int64_t i, std::int64_t j, std::int64_t height, std::int64_t width,
                         const Pool2dOptions& options) {
  const PoolRange rows = pool_range(i, 0, height, options), columns = pool_range(j, 1, width, options);
  if (!options.count_include_pad) {
    return 1.0 / static_cast<double>((rows.end - rows.begin) * (columns.end - columns.begin));
  }
  const std::int64_t last_row = std::min(rows.first + options.kernel[0], height + options.padding[0]);
  const std::int64_t last_column = std::min(columns.first + options.kernel[1], width + options.padding[1]);
  return 1.0 / static_cast<double>((last_row - rows.first) * (last_column - columns.first));
}

void avg_pool2d_forward(const Tensor& x, const Pool2dOptions& options, const Out& y) {
  check("avg_pool2d", x, options, y);
  if (y.numel() == 0) return;
  note_traffic(x, y);
  if constexpr (kHasCuda)
    if (const CudaOp op{"avg_pool2d_forward", y}) return cuda::avg_pool2d_forward(x, options, y);
  if (cpu::supports_avg_pool2d(x, y)) return cpu::avg_pool2d_forward(x, options, y);
  reference::avg_pool2d_forward(x, options, y);
}

void avg_pool2d_backward(const Tensor& grad_y, const Pool2dOptions& options, const Out& grad_x) {
  check("avg_pool2d_backward", grad_x, options, grad_y);
  if (grad_x.numel() == 0) return;
  note_traffic(grad_y, grad_x);
  if constexpr (kHasCuda)
    if (const CudaOp op{"avg_pool2d_backward", grad_x}) return cuda::avg_pool2d_backward(grad_y, options, grad_x);
  if (cpu::supports_avg_pool2d(grad_x, grad_y)) return cpu::avg_pool2d_backward(grad_y, options, grad_x);
  reference::avg_pool2d_backward(grad_y, options, grad_x);
}

}  // namespace tandem::kernels
