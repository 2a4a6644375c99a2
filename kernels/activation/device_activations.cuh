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
  // erfc keeps its relative accuracy where 1 + erf would cancel.
  __device__ static float normal_cdf(float x) {
    constexpr float kFactor = 1.0f / std::numbers::sqrt2_v<float>;
    return 0.5f * erfcf(-x * kFactor);
  }
  __device__ static float normal_density(float x) {
    constexpr float kFactor = std::numbers::inv_sqrtpi_v<float> / std::numbers::sqrt2_v<float>;
    return expf(-0.5f * x * x) * kFactor;
  }
  __device__ static float value(float x) { return x * normal_cdf(x); }
  __device__ static float gradient(float x, float grad) { return grad * (normal_cdf(x) + x * normal_density(x)); }
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
