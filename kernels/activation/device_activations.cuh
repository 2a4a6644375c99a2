// The activations on a GPU, in f32: value(x) = f(x), gradient(x, grad) = grad f'(x).
#pragma once

#include "tandem/kernels/activation/activation.h"

#include <cuda_runtime.h>

#include <numbers>
#include <tuple>

namespace tandem::kernels::cuda {

namespace activations {

struct None {
  __device__ static float value(float x) { return x; }
  __device__ static float gradient(float, float grad) { return grad; }
};

/// NaN stays NaN.
struct Relu {
  __device__ static float value(float x) { return x < 0.0f ? 0.0f : x; }
  __device__ static float gradient(float x, float grad) { return x > 0.0f ? grad : 0.0f; }
};

struct Gelu {
  /// How much of the standard normal distribution lies below x, and its density there.
  struct Normal {
    float cdf, density;
  };

  /// The part beyond |x| is exp(-x^2 / 2) times a function that falls slowly, here t times a polynomial of
  /// t = 1 / (1 + c |x|), minimax for |x| <= 14.5: relative error 2.6e-8, with rounding 2.6 ulp. Beyond 14.5 the part
  /// is 0. Value and slope take one
  /// exponential, and nothing cancels where cdf is small.
  __device__ static Normal normal(float x) {
    constexpr float kFactor = std::numbers::inv_sqrtpi_v<float> / std::numbers::sqrt2_v<float>;
    const float density = expf(-0.5f * x * x);
    const float y = fmaf(0.34375f, fminf(fabsf(x), 15.0f), 1.0f);
    const float rough = __fdividef(1.0f, y);
    const float t = fmaf(rough, fmaf(-y, rough, 1.0f), rough);
    float p = -2.7582252398133278e-2f;
    p = fmaf(p, t, 1.4280422031879425e-1f);
    p = fmaf(p, t, -2.6968109607696533e-1f);
    p = fmaf(p, t, 1.8874391913414001e-1f);
    p = fmaf(p, t, -3.7908218801021576e-2f);
    p = fmaf(p, t, 1.1210751533508301e-1f);
    p = fmaf(p, t, 1.1686956882476807e-1f);
    p = fmaf(p, t, 1.3752581179141998e-1f);
    p = fmaf(p, t, 1.3712054491043091e-1f);
    const float beyond = p * t * density;
    return {x > 0.0f ? 1.0f - beyond : beyond, density * kFactor};
  }

  __device__ static float value(float x) { return x * normal(x).cdf; }
  __device__ static float gradient(float x, float grad) {
    const Normal at = normal(x);
    return grad * fmaf(x, at.density, at.cdf);
  }
};

struct Silu {
  __device__ static float sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }
  __device__ static float value(float x) { return x * sigmoid(x); }
  __device__ static float gradient(float x, float grad) {
    const float s = sigmoid(x);
    return grad * s * (1.0f + x * (1.0f - s));
  }
};

/// The struct of an activation.
template <Activation kActivation>
using Of = std::tuple_element_t<static_cast<std::size_t>(kActivation), std::tuple<None, Relu, Gelu, Silu>>;

}  // namespace activations

/// One of these as a function of each element of a tensor (map.cuh).
template <typename Function>
struct ValueOf {
  __device__ float operator()(float x) const { return Function::value(x); }
};
template <typename Function>
struct GradientOf {
  __device__ float operator()(float x, float grad) const { return Function::gradient(x, grad); }
};

}  // namespace tandem::kernels::cuda
