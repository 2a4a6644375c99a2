// Recording normalisation of rows. Internal to autograd/functions.
#pragma once

#include "tandem/core/tensor.h"
#include "tandem/kernels/norm/row_norm.h"

#include <string_view>

namespace tandem::autograd {

/// kernels::row_norm_forward of x, in row-major order of its shape, as a matrix of that many columns; weight and bias
/// of any shape with as many elements as that wants, or undefined. Recorded under the name `op`, a literal.
Tensor row_norm(std::string_view op, const Tensor& x, std::int64_t columns, const Tensor& weight, const Tensor& bias,
                const kernels::RowNormOptions& options);

}  // namespace tandem::autograd
