// Cutting a window out of images.
#pragma once

#include "tandem/core/out.h"

namespace tandem::kernels {

/// out = rows [top, top + out.H) and columns [left, left + out.W) of `x`. N,C,H,W, any strides, one floating dtype and
/// device. Throws Error where that does not hold or the window leaves the image.
void crop2d(const Tensor& x, std::int64_t top, std::int64_t left, const Out& out);

/// grad_x = grad_out inside the window, 0 around it.
void crop2d_backward(const Tensor& grad_out, std::int64_t top, std::int64_t left, const Out& grad_x);

}  // namespace tandem::kernels
