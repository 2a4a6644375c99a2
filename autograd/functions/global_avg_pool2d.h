// Differentiable mean over all pixels.
#pragma once

#include "tandem/core/tensor.h"

namespace tandem::autograd {

/// x: [N, C, H, W], floating, at least one pixel; the result is [N, C, 1, 1]. Keeps nothing.
/// Example:
///     const Tensor y = global_avg_pool2d(Tensor::zeros({8, 512, 4, 4}));  // [8, 512, 1, 1]
Tensor global_avg_pool2d(const Tensor& x);

}  // namespace tandem::autograd
