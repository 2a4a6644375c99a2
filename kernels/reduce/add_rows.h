// Sums of a few long rows in f32: what a reduction over ranks adds up.
#pragma once

#include "tandem/core/out.h"

namespace tandem::kernels {

/// sum = (row 0 + row 1 + ...) / divisor, element by element: added in the order of the rows in the compute type (f32
/// for the half types), divided there, and rounded once. `rows` [n, count] with n > 0, dense and row-major; `sum`
/// [count], of the same floating dtype and device, at other addresses. Throws Error where that does not hold.
void add_rows(const Tensor& rows, double divisor, const Out& sum);

}  // namespace tandem::kernels
