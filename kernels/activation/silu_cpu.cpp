// SiLU on the CPU, vectorised and threaded.
#include "tandem/kernels/activation/silu_implementations.h"
#include "tandem/kernels/activation/vector_activations.h"
#include "tandem/kernels/elementwise/map.h"

namespace tandem::kernels::cpu {

using activations::Silu;

bool silu_supports(const Tensor& out) { return map_supports(out); }

void silu_forward(const Tensor& x, const Out& y) {
  map(x, y, [](float value) { return Silu::value(value); });
}

void silu_backward(const Tensor& x, const Tensor& grad_y, const Out& grad_x) {
  map(x, grad_y, grad_x, [](float value, float grad) { return Silu::gradient(value, grad); });
}

}  // namespace tandem::kernels::cpu
