// GELU on CUDA.
#include "tandem/kernels/activation/gelu_implementations.h"
#include "tandem/kernels/elementwise/map.cuh"

#include <numbers>

namespace tandem::kernels::cuda {

namespace {

// erfc keeps its relative accuracy where 1 + erf would cancel.
__device__ float normal_cdf(float x) {
  constexpr float kFactor = 1.0f / std::numbers::sqrt2_v<float>;
  return 0.5f * erfcf(-x * kFactor);
}

__device__ float normal_density(float x) {
  constexpr float kFactor = std::numbers::inv_sqrtpi_v<float> / std::numbers::sqrt2_v<float>;
  return expf(-0.5f * x * x) * kFactor;
}

struct Gelu {
  __device__ float operator()(float x) const { return x * normal_cdf(x); }
};

struct GeluGradient {
  __device__ float operator()(float x, float grad) const { return grad * (normal_cdf(x) + x * normal_density(x)); }
};

}  // namespace

void gelu_forward(const Tensor& x, const Out& y) { map("gelu_forward", Gelu{}, y, x); }

void gelu_backward(const Tensor& x, const Tensor& grad_y, const Out& grad_x) {
  map("gelu_backward", GeluGradient{}, grad_x, x, grad_y);
}

}  // namespace tandem::kernels::cuda
