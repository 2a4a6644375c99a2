// Differentiable sums over all elements.
// Example:
//     const Tensor x = Tensor::from<float>({1, 2, 3, 6}, {2, 2});
//     const double total = sum(x).item();     // 12
//     const double average = mean(x).item();  // 3
#pragma once

#include "tandem/core/tensor.h"

namespace tandem::autograd {

/// Sum of all elements, rank 0, in f32 for half x; 0 for none. Floating x of any shape and strides.
Tensor sum(const Tensor& x);

/// Mean of all elements, likewise; NaN for none.
Tensor mean(const Tensor& x);

}  // namespace tandem::autograd
