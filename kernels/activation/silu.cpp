// SiLU: checks and choice of implementation.
#include "tandem/kernels/activation/silu.h"
#include "tandem/kernels/activation/silu_implementations.h"
#include "tandem/kernels/cuda_choice.h"
#include "tandem/kernels/elementwise/map.h"
#include "tandem/kernels/traffic.h"

namespace tandem::kernels {

void silu_forward(const Tensor& x, const Out& y) {
  check_elementwise("silu_forward", x, y);
  note_traffic(x, y);
  if constexpr (kHasCuda)
    if (const CudaOp op{"silu_forward", y}) return cuda::silu_forward(x, y);
  if (cpu::silu_supports(y)) return cpu::silu_forward(x, y);
  reference::silu_forward(x, y);
}

void silu_backward(const Tensor& x, const Tensor& grad_y, const Out& grad_x) {
  check_elementwise("silu_backward", x, grad_x);
  check_elementwise("silu_backward", grad_y, grad_x);
  note_traffic(x, grad_y, grad_x);
  if constexpr (kHasCuda)
    if (const CudaOp op{"silu_backward", grad_x}) return cuda::silu_backward(x, grad_y, grad_x);
  if (cpu::silu_supports(grad_x)) return cpu::silu_backward(x, grad_y, grad_x);
  reference::silu_backward(x, grad_y, grad_x);
}

}  // namespace tandem::kernels
