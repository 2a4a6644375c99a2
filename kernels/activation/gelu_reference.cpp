// GELU, plain loops.
#include "tandem/kernels/activation/gelu_implementations.h"
#include "tandem/kernels/activation/plain_activations.h"
#include "tandem/kernels/elementwise/map.h"

namespace tandem::kernels::reference {

using activations::Gelu;

void gelu_forward(const Tensor& x, const Out& y) {
  map("gelu_forward", x, y, [](auto value) { return Gelu::value(value); });
}

void gelu_backward(const Tensor& x, const Tensor& grad_y, const Out& grad_x) {
  map("gelu_backward", x, grad_y, grad_x, [](auto value, auto grad) { return Gelu::gradient(value, grad); });
}

}  // namespace tandem::kernels::reference
