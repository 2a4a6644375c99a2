// Rectified linear unit: y = max(x, 0).
#pragma once

#include "core/tensor.h"

namespace tandem::kernels {

/// y = x where x > 0, else 0; NaN stays NaN.
/// All of one shape, floating dtype and device; inputs of any strides, outputs dense; the output may be the same
/// elements as an input. Throws Error where that does not hold.
void relu_forward(const Tensor& x, const Tensor& y);

/// grad_x = grad_y where y > 0, else 0. `y` may be the input x as well: both have the same sign.
void relu_backward(const Tensor& y, const Tensor& grad_y, const Tensor& grad_x);

namespace reference {
void relu_forward(const Tensor& x, const Tensor& y);
void relu_backward(const Tensor& y, const Tensor& grad_y, const Tensor& grad_x);
}  // namespace reference

namespace cpu {
/// f32, f16 and bf16 on the CPU, computed in float.
bool relu_supports(const Tensor& out);
void relu_forward(const Tensor& x, const Tensor& y);
void relu_backward(const Tensor& y, const Tensor& grad_y, const Tensor& grad_x);
}  // namespace cpu

namespace cuda {
/// f32, f16 and bf16 on a CUDA device.
void relu_forward(const Tensor& x, const Tensor& y);
void relu_backward(const Tensor& y, const Tensor& grad_y, const Tensor& grad_x);
}  // namespace cuda

}  // namespace tandem::kernels
