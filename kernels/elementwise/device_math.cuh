// CUDA's functions for the formulas of unary_functions.h and binary_functions.h.
#pragma once

#include <cuda_runtime.h>

namespace tandem::kernels::cuda {

// For both sides, because formulas are functions of both.
struct DeviceMath {
  __host__ __device__ static float exp(float x) { return expf(x); }
  __host__ __device__ static float exp_of_negative(float x) { return expf(x); }
  __host__ __device__ static float expm1(float x) { return expm1f(x); }
  __host__ __device__ static float log(float x) { return logf(x); }
  __host__ __device__ static float log1p(float x) { return log1pf(x); }
  __host__ __device__ static float log1p_exp(float x) { return log1pf(expf(x)); }
  __host__ __device__ static float sqrt(float x) { return sqrtf(x); }
  __host__ __device__ static float tanh(float x) { return tanhf(x); }
  __host__ __device__ static float abs(float x) { return fabsf(x); }
  __host__ __device__ static float pow(float x, float y) { return powf(x, y); }
  __host__ __device__ static float select(bool condition, float yes, float no) { return condition ? yes : no; }
};

}  // namespace tandem::kernels::cuda
