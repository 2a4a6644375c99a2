// Sigmoid linear unit, also called swish (Elfwing, Uchibe, Doya, arXiv:1702.03118).
#pragma once

#include "core/tensor.h"

namespace tandem::kernels {

/// y = x s(x), with s(x) = 1 / (1 + exp(-x)).
/// All of one shape, floating dtype and device; inputs of any strides, outputs dense; the output may be the same
/// elements as an input. Throws Error where that does not hold.
void silu_forward(const Tensor& x, const Tensor& y);

/// grad_x = grad_y s(x) (1 + x (1 - s(x))).
void silu_backward(const Tensor& x, const Tensor& grad_y, const Tensor& grad_x);

namespace reference {
void silu_forward(const Tensor& x, const Tensor& y);
void silu_backward(const Tensor& x, const Tensor& grad_y, const Tensor& grad_x);
}  // namespace reference

namespace cpu {
/// f32, f16 and bf16 on the CPU, computed in float.
bool silu_supports(const Tensor& out);
void silu_forward(const Tensor& x, const Tensor& y);
void silu_backward(const Tensor& x, const Tensor& grad_y, const Tensor& grad_x);
}  // namespace cpu

namespace cuda {
/// f32, f16 and bf16 on a CUDA device.
void silu_forward(const Tensor& x, const Tensor& y);
void silu_backward(const Tensor& x, const Tensor& grad_y, const Tensor& grad_x);
}  // namespace cuda

}  // namespace tandem::kernels
