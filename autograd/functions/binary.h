// Functions of two tensors by the kernels' table, with broadcasting. Internal to autograd/functions.
#pragma once

#include "tandem/core/tensor.h"
#include "tandem/kernels/elementwise/binary.h"

#include <string_view>

namespace tandem::autograd {

/// function(a, b) of shapes that broadcast, recorded under the name `op`, a literal.
Tensor binary(std::string_view op, kernels::Binary function, const Tensor& a, const Tensor& b);

}  // namespace tandem::autograd
