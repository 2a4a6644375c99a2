// GELU on the CPU, vectorised and threaded.
#include "tandem/kernels/activation/gelu_implementations.h"
#include "tandem/kernels/activation/vector_activations.h"
#include "tandem/kernels/elementwise/map.h"

namespace tandem::kernels::cpu {

using activations::Gelu;

bool gelu_supports(const Tensor& out) { return map_supports(out); }

void gelu_forward(const Tensor& x, const Out& y) {
  map(x, y, [](float value) { return Gelu::value(value); });
}

void gelu_backward(const Tensor& x, const Tensor& grad_y, const Out& grad_x) {
  map(x, grad_y, grad_x, [](float value, float grad) { return Gelu::gradient(value, grad); });
}

}  // namespace tandem::kernels::cpu
