// SiLU on CUDA.
#include "tandem/kernels/activation/silu_implementations.h"
#include "tandem/kernels/elementwise/map.cuh"

namespace tandem::kernels::cuda {

namespace {

__device__ float sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }

struct Silu {
  __device__ float operator()(float x) const { return x * sigmoid(x); }
};

struct SiluGradient {
  __device__ float operator()(float x, float grad) const {
    const float s = sigmoid(x);
    return grad * s * (1.0f + x * (1.0f - s));
  }
};

}  // namespace

void silu_forward(const Tensor& x, const Out& y) { map("silu_forward", Silu{}, y, x); }

void silu_backward(const Tensor& x, const Tensor& grad_y, const Out& grad_x) {
  map("silu_backward", SiluGradient{}, grad_x, x, grad_y);
}

}  // namespace tandem::kernels::cuda
