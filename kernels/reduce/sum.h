// Sum and mean of all elements.
#pragma once

#include "core/tensor.h"

namespace tandem::kernels {

/// out = sum of all elements of `x` (0 if it has none). `x` any shape and strides, floating; `out` rank 0 of the same
/// dtype and device. Added up in f64, in an order that depends on shape and strides only. Throws Error where that does
/// not hold.
void sum(const Tensor& x, const Tensor& out);

/// out = sum / number of elements; NaN if there is none, as in PyTorch.
void mean(const Tensor& x, const Tensor& out);

namespace reference {
void sum(const Tensor& x, const Tensor& out);
void mean(const Tensor& x, const Tensor& out);
}  // namespace reference

namespace cpu {
/// f32, f16 and bf16 on the CPU.
bool sum_supports(const Tensor& x);
void sum(const Tensor& x, const Tensor& out);
void mean(const Tensor& x, const Tensor& out);
}  // namespace cpu

namespace cuda {
/// f32, f16 and bf16 on a CUDA device.
void sum(const Tensor& x, const Tensor& out);
void mean(const Tensor& x, const Tensor& out);
}  // namespace cuda

}  // namespace tandem::kernels
