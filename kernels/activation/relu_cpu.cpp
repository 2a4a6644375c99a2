// ReLU on the CPU, vectorised and threaded.
#include "kernels/activation/relu.h"
#include "kernels/elementwise/map.h"

namespace tandem::kernels::cpu {

bool relu_supports(const Tensor& out) { return map_supports(out); }

void relu_forward(const Tensor& x, const Tensor& y) {
  map(x, y, [](float value) { return value <= 0.0f ? 0.0f : value; });
}

void relu_backward(const Tensor& y, const Tensor& grad_y, const Tensor& grad_x) {
  map(y, grad_y, grad_x, [](float value, float grad) { return value <= 0.0f ? 0.0f : grad; });
}

}  // namespace tandem::kernels::cpu
