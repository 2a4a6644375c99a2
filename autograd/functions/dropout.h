// Differentiable dropout.
#pragma once

#include "tandem/core/random.h"
#include "tandem/core/tensor.h"

namespace tandem::autograd {

/// Zeroes elements of x with probability p in [0, 1] and scales the others by 1 / (1 - p). The mask is a function of
/// the key alone (see kernels::dropout_forward): backward draws it again, and nothing but the key is kept. `step`: see
/// there, too; backward reads it again, so that it must still hold the same number by then.
/// Example:
///     const RandomKey key{.seed = 1, .stream = RandomStream::dropout, .step = 7};
///     const Tensor y = dropout(Tensor::full({4, 8}, 1.0), 0.5, key);  // about half of them 0, the others 2
Tensor dropout(const Tensor& x, double p, const RandomKey& key, const Tensor& step = {});

}  // namespace tandem::autograd
