// ReLU on the CPU, vectorised and threaded.
#include "tandem/kernels/activation/relu_implementations.h"
#include "tandem/kernels/elementwise/map.h"

namespace tandem::kernels::cpu {

bool relu_supports(const Tensor& out) { return map_supports(out); }

void relu_forward(const Tensor& x, const Out& y) {
  map(x, y, [](float value) { return value <= 0.0f ? 0.0f : value; });
}

void relu_backward(const Tensor& y, const Tensor& grad_y, const Out& grad_x) {
  map(y, grad_y, grad_x, [](float value, float grad) { return value <= 0.0f ? 0.0f : grad; });
}

}  // namespace tandem::kernels::cpu
