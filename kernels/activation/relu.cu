// ReLU on CUDA.
#include "tandem/kernels/activation/relu_implementations.h"
#include "tandem/kernels/elementwise/map.cuh"

namespace tandem::kernels::cuda {

namespace {

// Written so that NaN stays NaN.
struct Relu {
  __device__ float operator()(float x) const { return x <= 0.0f ? 0.0f : x; }
};

struct ReluGradient {
  __device__ float operator()(float y, float grad) const { return y <= 0.0f ? 0.0f : grad; }
};

}  // namespace

void relu_forward(const Tensor& x, const Out& y) { map("relu_forward", Relu{}, y, x); }

void relu_backward(const Tensor& y, const Tensor& grad_y, const Out& grad_x) {
  map("relu_backward", ReluGradient{}, grad_x, y, grad_y);
}

}  // namespace tandem::kernels::cuda
