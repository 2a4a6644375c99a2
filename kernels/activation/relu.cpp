// ReLU: checks and choice of implementation.
#include "tandem/kernels/activation/relu.h"
#include "tandem/kernels/activation/relu_implementations.h"
#include "tandem/kernels/cuda_choice.h"
#include "tandem/kernels/elementwise/map.h"
#include "tandem/kernels/traffic.h"

namespace tandem::kernels {

void relu_forward(const Tensor& x, const Out& y) {
  check_elementwise("relu_forward", x, y);
  note_traffic(x, y);
  if constexpr (kHasCuda)
    if (const CudaOp op{"relu_forward", y}) return cuda::relu_forward(x, y);
  if (cpu::relu_supports(y)) return cpu::relu_forward(x, y);
  reference::relu_forward(x, y);
}

void relu_backward(const Tensor& y, const Tensor& grad_y, const Out& grad_x) {
  check_elementwise("relu_backward", y, grad_x);
  check_elementwise("relu_backward", grad_y, grad_x);
  note_traffic(y, grad_y, grad_x);
  if constexpr (kHasCuda)
    if (const CudaOp op{"relu_backward", grad_x}) return cuda::relu_backward(y, grad_y, grad_x);
  if (cpu::relu_supports(grad_x)) return cpu::relu_backward(y, grad_y, grad_x);
  reference::relu_backward(y, grad_y, grad_x);
}

}  // namespace tandem::kernels
