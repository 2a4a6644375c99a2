// SiLU, plain loops.
#include "tandem/kernels/activation/plain_activations.h"
#include "tandem/kernels/activation/silu_implementations.h"
#include "tandem/kernels/elementwise/map.h"

namespace tandem::kernels::reference {

using activations::Silu;

void silu_forward(const Tensor& x, const Out& y) {
  map("silu_forward", x, y, [](auto value) { return Silu::value(value); });
}

void silu_backward(const Tensor& x, const Tensor& grad_y, const Out& grad_x) {
  map("silu_backward", x, grad_y, grad_x, [](auto value, auto grad) { return Silu::gradient(value, grad); });
}

}  // namespace tandem::kernels::reference
