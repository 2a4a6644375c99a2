// Differentiable joining of tensors.
// Example:
//     const Tensor a = Tensor::zeros({8, 3}), b = Tensor::full({8, 2}, 1.0);
//     const Tensor features = concat({a, b}, 1);  // [8, 5]
//     const Tensor pair = stack({a, a}, -1);      // [8, 3, 2]
#pragma once

#include "tandem/core/tensor.h"

#include <vector>

namespace tandem::autograd {

/// The tensors one after another along `dim`: a copy. All of one dtype (any), device and rank of 1 or more, and of one
/// shape but for `dim`; any strides. Images that are stored channels_last give an image stored like that. The gradient
/// of each is its part of the gradient, a view. Throws Error where the tensors differ, and for none.
Tensor concat(const std::vector<Tensor>& tensors, int dim = 0);

/// The same along a new dimension, which becomes dimension `dim` of the result: tensors of one shape.
Tensor stack(const std::vector<Tensor>& tensors, int dim = 0);

}  // namespace tandem::autograd
