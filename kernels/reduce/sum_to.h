// Sum over broadcast dimensions: the gradient of broadcasting.
#pragma once

#include "core/tensor.h"

namespace tandem::kernels {

/// out[i] = sum over all elements of `x` that Tensor::expand would make out of out[i]. The shape of `out` must expand
/// to that of `x` (missing leading dimensions, or size 1 where `x` has more). `x` of any strides, `out` dense; same
/// floating dtype and device. Added up in f64, in an order that depends on shape and strides only. Throws Error where
/// that does not hold.
void sum_to(const Tensor& x, const Tensor& out);

namespace reference {
void sum_to(const Tensor& x, const Tensor& out);
}

namespace cpu {
/// f32, f16 and bf16 on the CPU.
bool sum_to_supports(const Tensor& x);
void sum_to(const Tensor& x, const Tensor& out);
}  // namespace cpu

namespace cuda {
/// f32, f16 and bf16 on a CUDA device.
void sum_to(const Tensor& x, const Tensor& out);
}  // namespace cuda

}  // namespace tandem::kernels
