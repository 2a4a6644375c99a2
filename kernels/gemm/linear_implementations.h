// The implementations of linear.h, which its dispatcher chooses from.
#pragma once

#include "tandem/core/out.h"
#include "tandem/kernels/gemm/linear.h"

namespace tandem::kernels {

namespace reference {
/// Plain loops, sums in double, rounded once.
void linear_forward(const Tensor& x, const Tensor& weight, const Tensor& bias, bool relu, const Out& y);
void linear_backward(const Tensor& x, const Tensor& weight, const Tensor& y, const Tensor& grad_y, const Out& grad_x,
                     const Out& grad_weight, const Out& grad_bias);
}  // namespace reference

namespace cpu {
/// f32, f16 and bf16 on the packed product of gemm_implementations.h, in float; half types are rounded once.
bool supports_linear(const Tensor& x);
decltype(reference::linear_forward) linear_forward;
decltype(reference::linear_backward) linear_backward;
}  // namespace cpu

namespace cuda {
// f32, f16 and bf16, accumulated in float.

/// By cuBLAS or by our tiles.
decltype(kernels::linear_forward) linear_forward;
decltype(kernels::linear_backward) linear_backward;

namespace tile {
/// On the product of product.cuh.
decltype(reference::linear_forward) linear_forward;
decltype(reference::linear_backward) linear_backward;
}  // namespace tile
}  // namespace cuda

}  // namespace tandem::kernels
