// ReLU, plain loops.
#include "kernels/activation/relu.h"
#include "kernels/elementwise/map.h"

namespace tandem::kernels::reference {

void relu_forward(const Tensor& x, const Tensor& y) {
  map("relu_forward", x, y, [](auto value) { return value <= 0 ? decltype(value){0} : value; });
}

void relu_backward(const Tensor& y, const Tensor& grad_y, const Tensor& grad_x) {
  map("relu_backward", y, grad_y, grad_x, [](auto value, auto grad) { return value <= 0 ? decltype(grad){0} : grad; });
}

}  // namespace tandem::kernels::reference
