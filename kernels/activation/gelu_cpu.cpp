// GELU on the CPU, vectorised and threaded.
#include "tandem/kernels/activation/gelu_implementations.h"
#include "tandem/kernels/activation/vector_math.h"
#include "tandem/kernels/elementwise/map.h"

#include <numbers>

namespace tandem::kernels::cpu {

namespace {

inline float normal_cdf(float x) { return 0.5f + 0.5f * vector_erf(x / std::numbers::sqrt2_v<float>); }

/// x times the normal density; multiplied in this order no intermediate is subnormal, however large x. Where
/// vector_exp() ends, its remainder of 1e-38 would count for a huge x: the density is 0 from there on.
inline float density_term(float x) {
  constexpr float kFactor = std::numbers::inv_sqrtpi_v<float> / std::numbers::sqrt2_v<float>;
  const float power = -0.5f * x * x;
  return x * detail::select(power < -87.0f, 0.0f, vector_exp(power)) * kFactor;
}

}  // namespace

bool gelu_supports(const Tensor& out) { return map_supports(out); }

void gelu_forward(const Tensor& x, const Out& y) {
  map(x, y, [](float value) { return value * normal_cdf(value); });
}

void gelu_backward(const Tensor& x, const Tensor& grad_y, const Out& grad_x) {
  map(x, grad_y, grad_x, [](float value, float grad) { return grad * (normal_cdf(value) + density_term(value)); });
}

}  // namespace tandem::kernels::cpu
