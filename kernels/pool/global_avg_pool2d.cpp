// Global average pooling: checks, and the choice of implementation.
#include "tandem/kernels/pool/global_avg_pool2d.h"
#include "tandem/kernels/cuda_choice.h"
#include "tandem/kernels/pool/global_avg_pool2d_implementations.h"
#include "tandem/kernels/traffic.h"

namespace tandem::kernels {

namespace {

void check(std::string_view op, const Tensor& x, const Tensor& y) {
  require(x.rank() == 4 && x.size(2) * x.size(3) > 0, "{}: needs images [N, C, H, W] of at least one pixel, got {}", op,
          describe(x));
  const Shape expected{x.size(0), x.size(1), 1, 1};
  require(is_floating(x.dtype()) && y.dtype() == x.dtype() && y.shape() == expected,
          "{}: image {} pools to shape {} of the same floating dtype, got {}", op, describe(x), to_string(expected),
          describe(y));
  require_one_device(op, x, y);
}

}  // namespace

void global_avg_pool2d_forward(const Tensor& x, const Out& y) {
  check("global_avg_pool2d", x, y);
  if (y.numel() == 0) return;
  note_traffic(x, y);
  if constexpr (kHasCuda)
    if (const CudaOp op{"global_avg_pool2d_forward", y}) return cuda::global_avg_pool2d_forward(x, y);
  if (cpu::supports_global_avg_pool2d(x, y)) return cpu::global_avg_pool2d_forward(x, y);
  reference::global_avg_pool2d_forward(x, y);
}

void global_avg_pool2d_backward(const Tensor& grad_y, const Out& grad_x) {
  check("global_avg_pool2d_backward", grad_x, grad_y);
  if (grad_x.numel() == 0) return;
  note_traffic(grad_y, grad_x);
  if constexpr (kHasCuda)
    if (const CudaOp op{"global_avg_pool2d_backward", grad_x}) return cuda::global_avg_pool2d_backward(grad_y, grad_x);
  if (cpu::supports_global_avg_pool2d(grad_x, grad_y)) return cpu::global_avg_pool2d_backward(grad_y, grad_x);
  reference::global_avg_pool2d_backward(grad_y, grad_x);
}

}  // namespace tandem::kernels
