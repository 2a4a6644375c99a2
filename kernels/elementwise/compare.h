// Element-wise comparisons and logical combinations, which make masks.
#pragma once

#include "tandem/core/out.h"

#include <cstdint>
#include <string_view>

namespace tandem::kernels {

/// What is asked of two elements; the logical ones ask which of them are not 0.
enum class Comparison : std::uint8_t { eq, ne, lt, le, gt, ge, logical_and, logical_or, logical_xor };

/// out = 1 where the comparison of a and b is true, else 0. `out` is u8 and dense, the others are of one dtype,
/// whichever it is, and of any strides (0 for broadcast dimensions: see Tensor::expand); all of one shape and device.
/// What is compared with NaN is false, but for ne; NaN itself is not 0. Throws Error that begins with `op` where that
/// does not hold.
void compare(std::string_view op, Comparison comparison, const Tensor& a, const Tensor& b, const Out& out);

}  // namespace tandem::kernels
