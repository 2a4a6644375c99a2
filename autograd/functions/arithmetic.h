// Differentiable arithmetic: sums, differences, products and quotients, of tensors and of numbers. As operators in
// autograd/operators.h.
// Example:
//     const Tensor row = Tensor::from<float>({10, 20, 30}, {3});
//     const Tensor y = add(scale(Tensor::full({2, 3}, 2.0), 0.5), row);  // [2, 3]
//     const std::vector<float> values = y.to_vector<float>();            // {11, 21, 31, 11, 21, 31}
//     const std::vector<float> halves = div(row, 2).to_vector<float>();  // {5, 10, 15}
#pragma once

#include "tandem/core/tensor.h"

namespace tandem::autograd {

/// a + b, element by element. Floating, one dtype and device; shapes broadcast as in PyTorch, and gradients are summed
/// over what was broadcast. Throws Error where that does not hold.
Tensor add(const Tensor& a, const Tensor& b);

/// a - b, likewise.
Tensor sub(const Tensor& a, const Tensor& b);

/// a * b, likewise.
Tensor mul(const Tensor& a, const Tensor& b);

/// a / b, likewise; what a division by 0 gives is infinite or NaN.
Tensor div(const Tensor& a, const Tensor& b);

/// With a number, which is rounded to the dtype of the tensor (f32 for halves). Any floating tensor, as below; Error
/// for another.
/// @{
Tensor add(const Tensor& x, double number);
Tensor sub(const Tensor& x, double number);
Tensor sub(double number, const Tensor& x);
Tensor mul(const Tensor& x, double number);
Tensor div(const Tensor& x, double number);
/// @}

/// number / x; f32 for half x, as reciprocal().
Tensor div(double number, const Tensor& x);

/// -x.
Tensor neg(const Tensor& x);

/// factor * x.
Tensor scale(const Tensor& x, double factor);

}  // namespace tandem::autograd
