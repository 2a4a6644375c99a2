// Element-wise product with a number: out = factor * a.
#pragma once

#include "tandem/core/out.h"

namespace tandem::kernels {

/// out = factor * a, the factor rounded to the compute type (f32 for the half types). One shape, floating dtype and
/// device; `a` of any strides, `out` dense; they may be the same elements. Throws Error where that does not hold.
void scale(const Tensor& a, double factor, const Out& out);

}  // namespace tandem::kernels
