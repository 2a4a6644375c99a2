// An element-wise function of your own that runs on a GPU, too: for .cu files.
//
//     struct Sine {
//       template <typename T>
//       __host__ __device__ T operator()(T x) const { return sin(x); }
//     };
//     struct SineGradient {
//       template <typename T>
//       __host__ __device__ T operator()(T x, T grad) const { return grad * cos(x); }
//     };
//     Tensor sine(const Tensor& x) {
//       return autograd::elementwise<autograd::OnDevice>("sine", x, Sine{}, SineGradient{});
//     }
#pragma once

#include "tandem/autograd/elementwise.h"
#include "tandem/kernels/elementwise/map.cuh"

namespace tandem::autograd {

/// Where elementwise() computes: on the device of the tensors. On a GPU functors are copied to it and called on
/// `float`, for f32, f16 and bf16; so they may hold numbers, and pointers to memory of the GPU. Lambdas need nvcc's
/// --extended-lambda, and __host__ __device__.
struct OnDevice {
  template <typename Function, typename... Tensors>
  static void map(std::string_view op, const Function& function, const Out& out, const Tensors&... in) {
    if (out.device().type == DeviceType::cpu) return OnHost::map(op, function, out, in...);
    (kernels::check_elementwise(op, in, out), ...);
    kernels::cuda::map(op, function, out, in...);
  }
};

}  // namespace tandem::autograd
