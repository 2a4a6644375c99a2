// Differentiable sums and products.
// Example:
//     const Tensor row = Tensor::from<float>({10, 20, 30}, {3});
//     const Tensor y = add(scale(Tensor::full({2, 3}, 2.0), 0.5), row);  // [2, 3]
//     const std::vector<float> values = y.to_vector<float>();            // {11, 21, 31, 11, 21, 31}
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
