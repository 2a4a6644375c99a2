// Sigmoid linear unit, also called swish (Elfwing, Uchibe, Doya, arXiv:1702.03118).
#pragma once

#include "tandem/core/out.h"

namespace tandem::kernels {

/// y = x s(x), with s(x) = 1 / (1 + exp(-x)): NaN of minus infinity, as in PyTorch, and 0 of numbers far below 0.
/// All of one shape, floating dtype and device; inputs of any strides, outputs dense; the output may be the same
/// elements as an input. Throws Error where that does not hold.
void silu_forward(const Tensor& x, const Out& y);

/// grad_x = grad_y s(x) (1 + x (1 - s(x))): NaN of either infinity, as in PyTorch.
void silu_backward(const Tensor& x, const Tensor& grad_y, const Out& grad_x);

}  // namespace tandem::kernels
