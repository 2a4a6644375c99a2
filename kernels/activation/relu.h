// Rectified linear unit: y = max(x, 0).
#pragma once

#include "tandem/core/out.h"

namespace tandem::kernels {

/// y = x where x > 0, else 0; NaN stays NaN.
/// All of one shape, floating dtype and device; inputs of any strides, outputs dense; the output may be the same
/// elements as an input. Throws Error where that does not hold.
void relu_forward(const Tensor& x, const Out& y);

/// grad_x = grad_y where y > 0, else 0. `y` may be the input x as well: both have the same sign.
void relu_backward(const Tensor& y, const Tensor& grad_y, const Out& grad_x);

}  // namespace tandem::kernels
