// The activations in f32 without branches or library calls, so that loops over them vectorise: value(x) = f(x),
// gradient(x, grad) = grad f'(x).
#pragma once

#include "tandem/kernels/activation/activation.h"
#include "tandem/kernels/activation/vector_math.h"

#include <numbers>
#include <tuple>

namespace tandem::kernels::cpu {

namespace activations {

struct None {
  static float value(float x) { return x; }
  static float gradient(float, float grad) { return grad; }
};

/// NaN stays NaN.
struct Relu {
  static float value(float x) { return x < 0.0f ? 0.0f : x; }
  static float gradient(float x, float grad) { return x > 0.0f ? grad : 0.0f; }
};

struct Gelu {
  static float normal_cdf(float x) { return 0.5f + 0.5f * vector_erf(x / std::numbers::sqrt2_v<float>); }

  /// x times the normal density; multiplied in this order no intermediate is subnormal, however large x. Where
  /// vector_exp() ends, its remainder of 1e-38 would count for a huge x: the density is 0 from there on.
  static float density_term(float x) {
    constexpr float kFactor = std::numbers::inv_sqrtpi_v<float> / std::numbers::sqrt2_v<float>;
    const float power = -0.5f * x * x;
    return x * detail::select(power < -87.0f, 0.0f, vector_exp(power)) * kFactor;
  }

  static float value(float x) { return x * normal_cdf(x); }
  static float gradient(float x, float grad) { return grad * (normal_cdf(x) + density_term(x)); }
};

struct Silu {
  /// 0 below -87: a remainder of 1e-38, which is where vector_exp() ends, would count where x is huge.
  static float sigmoid(float x) { return detail::select(x < -87.0f, 0.0f, 1.0f / (1.0f + vector_exp(-x))); }

  static float value(float x) { return x * sigmoid(x); }
  static float gradient(float x, float grad) {
    const float s = sigmoid(x);
    return grad * s * (1.0f + x * (1.0f - s));
  }
};

/// The struct of an activation.
template <Activation kActivation>
using Of = std::tuple_element_t<static_cast<std::size_t>(kActivation), std::tuple<None, Relu, Gelu, Silu>>;

}  // namespace activations

}  // namespace tandem::kernels::cpu
