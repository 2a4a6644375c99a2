// ReLU, plain loops.
#include "tandem/kernels/activation/relu_implementations.h"
#include "tandem/kernels/elementwise/map.h"

namespace tandem::kernels::reference {

void relu_forward(const Tensor& x, const Out& y) {
  map("relu_forward", x, y, [](auto value) { return value <= 0 ? decltype(value){0} : value; });
}

void relu_backward(const Tensor& y, const Tensor& grad_y, const Out& grad_x) {
  map("relu_backward", y, grad_y, grad_x, [](auto value, auto grad) { return value <= 0 ? decltype(grad){0} : grad; });
}

}  // namespace tandem::kernels::reference
