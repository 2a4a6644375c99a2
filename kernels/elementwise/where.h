// Element-wise choice between two tensors.
#pragma once

#include "tandem/core/out.h"

namespace tandem::kernels {

/// out = a where the condition is not 0, else b, bit by bit. The condition is u8, the others of one dtype; all
/// of one shape and device; inputs of any strides (0 for broadcast dimensions: see Tensor::expand), `out` dense; it may
/// be the same elements as `a` or `b`. Throws Error where that does not hold.
void where(const Tensor& condition, const Tensor& a, const Tensor& b, const Out& out);

/// grad = grad_out where the condition is not 0 (`chosen`; the gradient of a) or where it is 0 (the gradient of b),
/// else 0. Of floating dtypes.
void where_backward(const Tensor& condition, bool chosen, const Tensor& grad_out, const Out& grad);

}  // namespace tandem::kernels
