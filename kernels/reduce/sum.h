// Sum and mean of all elements.
#pragma once

#include "tandem/core/out.h"

namespace tandem::kernels {

/// out = sum of all elements of `x` (0 if it has none). `x` any shape and strides, floating; `out` rank 0 of the same
/// dtype and device. Added up in f64, in an order that depends on shape and strides only. Throws Error where that does
/// not hold.
void sum(const Tensor& x, const Out& out);

/// out = sum / number of elements; NaN if there is none, as in PyTorch.
void mean(const Tensor& x, const Out& out);

}  // namespace tandem::kernels
