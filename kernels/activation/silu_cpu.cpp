// SiLU on the CPU, vectorised and threaded.
#include "tandem/kernels/activation/silu_implementations.h"
#include "tandem/kernels/activation/vector_math.h"
#include "tandem/kernels/elementwise/map.h"

namespace tandem::kernels::cpu {

namespace {

/// 0 below -87: a remainder of 1e-38, which is where vector_exp() ends, would count where x is huge.
inline float sigmoid(float x) { return detail::select(x < -87.0f, 0.0f, 1.0f / (1.0f + vector_exp(-x))); }

}  // namespace

bool silu_supports(const Tensor& out) { return map_supports(out); }

void silu_forward(const Tensor& x, const Out& y) {
  map(x, y, [](float value) { return value * sigmoid(value); });
}

void silu_backward(const Tensor& x, const Tensor& grad_y, const Out& grad_x) {
  map(x, grad_y, grad_x, [](float value, float grad) {
    const float s = sigmoid(value);
    return grad * s * (1.0f + value * (1.0f - s));
  });
}

}  // namespace tandem::kernels::cpu
