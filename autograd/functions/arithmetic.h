// Differentiable sums and products.
#pragma once

#include "tandem/core/tensor.h"

namespace tandem::autograd {

/// a + b, element by element. Floating, one dtype and device; shapes broadcast as in PyTorch, and gradients are summed
/// over what was broadcast. Throws Error where that does not hold.
Tensor add(const Tensor& a, const Tensor& b);

/// a * b, likewise.
Tensor mul(const Tensor& a, const Tensor& b);

/// factor * x.
Tensor scale(const Tensor& x, double factor);

}  // namespace tandem::autograd
