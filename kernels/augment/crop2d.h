// Cutting a window out of images.
#pragma once

#include "core/tensor.h"

namespace tandem::kernels {

/// out = rows [top, top + out.H) and columns [left, left + out.W) of `x`. N,C,H,W, any strides, one floating dtype and
/// device. Throws Error where that does not hold or the window leaves the image.
void crop2d(const Tensor& x, std::int64_t top, std::int64_t left, const Tensor& out);

/// grad_x = grad_out inside the window, 0 around it.
void crop2d_backward(const Tensor& grad_out, std::int64_t top, std::int64_t left, const Tensor& grad_x);

namespace reference {
void crop2d(const Tensor& x, std::int64_t top, std::int64_t left, const Tensor& out);
void crop2d_backward(const Tensor& grad_out, std::int64_t top, std::int64_t left, const Tensor& grad_x);
}  // namespace reference

namespace cpu {
/// Any layout on the CPU: the copy of a view, in runs as long as the layouts allow.
bool crop2d_supports(const Tensor& out);
void crop2d(const Tensor& x, std::int64_t top, std::int64_t left, const Tensor& out);
void crop2d_backward(const Tensor& grad_out, std::int64_t top, std::int64_t left, const Tensor& grad_x);
}  // namespace cpu

namespace cuda {
/// f32, f16 and bf16 on a CUDA device.
void crop2d(const Tensor& x, std::int64_t top, std::int64_t left, const Tensor& out);
void crop2d_backward(const Tensor& grad_out, std::int64_t top, std::int64_t left, const Tensor& grad_x);
}  // namespace cuda

}  // namespace tandem::kernels
