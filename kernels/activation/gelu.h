// Gaussian error linear unit, exact form (Hendrycks and Gimpel, arXiv:1606.08415).
#pragma once

#include "tandem/core/out.h"

namespace tandem::kernels {

/// y = x Phi(x), with Phi(x) = (1 + erf(x / sqrt 2)) / 2.
/// All of one shape, floating dtype and device; inputs of any strides, outputs dense; the output may be the same
/// elements as an input. Throws Error where that does not hold.
void gelu_forward(const Tensor& x, const Out& y);

/// grad_x = grad_y (Phi(x) + x exp(-x^2 / 2) / sqrt(2 pi)).
void gelu_backward(const Tensor& x, const Tensor& grad_y, const Out& grad_x);

}  // namespace tandem::kernels
