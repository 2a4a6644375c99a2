// GELU: checks and choice of implementation.
#include "tandem/kernels/activation/gelu.h"
#include "tandem/kernels/activation/gelu_implementations.h"
#include "tandem/kernels/cuda_choice.h"
#include "tandem/kernels/elementwise/map.h"
#include "tandem/kernels/traffic.h"

namespace tandem::kernels {

void gelu_forward(const Tensor& x, const Out& y) {
  check_elementwise("gelu_forward", x, y);
  note_traffic(x, y);
  if constexpr (kHasCuda)
    if (const CudaOp op{"gelu_forward", y}) return cuda::gelu_forward(x, y);
  if (cpu::gelu_supports(y)) return cpu::gelu_forward(x, y);
  reference::gelu_forward(x, y);
}

void gelu_backward(const Tensor& x, const Tensor& grad_y, const Out& grad_x) {
  check_elementwise("gelu_backward", x, grad_x);
  check_elementwise("gelu_backward", grad_y, grad_x);
  note_traffic(x, grad_y, grad_x);
  if constexpr (kHasCuda)
    if (const CudaOp op{"gelu_backward", grad_x}) return cuda::gelu_backward(x, grad_y, grad_x);
  if (cpu::gelu_supports(grad_x)) return cpu::gelu_backward(x, grad_y, grad_x);
  reference::gelu_backward(x, grad_y, grad_x);
}

}  // namespace tandem::kernels
