// Functions of one tensor by the kernels' table. Internal to autograd/functions.
#pragma once

#include "tandem/core/tensor.h"
#include "tandem/kernels/elementwise/unary.h"

#include <string_view>

namespace tandem::autograd {

/// function(x), recorded under the name `op`, a literal. Halves give f32 where a result may be far larger than x (see
/// OpKind::exponential).
Tensor unary(std::string_view op, kernels::Unary function, const Tensor& x, const kernels::Numbers& numbers = {});

}  // namespace tandem::autograd
