// Sum over broadcast dimensions: the gradient of broadcasting.
#pragma once

#include "tandem/core/out.h"

namespace tandem::kernels {

/// out[i] = sum over all elements of `x` that Tensor::expand would make out of out[i]. The shape of `out` must expand
/// to that of `x` (missing leading dimensions, or size 1 where `x` has more). `x` of any strides, `out` dense; both on
/// one device. Of a floating dtype `out` has the same, and sums are added up in f64, in an order that depends on shape
/// and strides only; of integers `out` is i64, and sums wrap around. Throws Error where that does not hold.
void sum_to(const Tensor& x, const Out& out);

}  // namespace tandem::kernels
