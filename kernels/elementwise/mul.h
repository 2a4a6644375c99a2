// Element-wise product: out = a * b.
#pragma once

#include "tandem/core/out.h"

namespace tandem::kernels {

/// out = a * b. All of one shape, floating dtype and device; `a` and `b` of any strides (0 for broadcast dimensions:
/// see Tensor::expand), `out` dense. `out` may be the same elements as `a` or `b`. Throws Error where that does not
/// hold.
void mul(const Tensor& a, const Tensor& b, const Out& out);

}  // namespace tandem::kernels
