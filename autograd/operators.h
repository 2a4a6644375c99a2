// + - * / and < <= > >= of tensors and numbers, as functions of autograd/functions/arithmetic.h and compare.h. They are
// found wherever a Tensor is an operand.
//
// There is no += and its like: a reader could not tell whether the elements change, which other handles of them and the
// tape see as well, or the variable names another tensor. `x = x + y` does the second, and is recorded. Without the
// tape, kernels::add(x, y, Out(x)) and its like do the first.
// Example:
//     #include "tandem/autograd/variable.h"
//     const Tensor x = set_requires_grad(Tensor::from<float>({1, 2}, {2}));
//     const Tensor y = 3 * x * x - x / 2 + 1;
//     const std::vector<float> values = y.to_vector<float>();  // {3.5, 12}
//     backward(y, Tensor::full({2}, 1.0));
//     const std::vector<float> slopes = grad(x).to_vector<float>();  // {5.5, 11.5}
#pragma once

#include "tandem/core/tensor.h"

namespace tandem {

/// As add(); a number is rounded to the dtype of the tensor.
/// @{
Tensor operator+(const Tensor& a, const Tensor& b);
Tensor operator+(const Tensor& x, double number);
Tensor operator+(double number, const Tensor& x);
/// @}

/// As sub().
/// @{
Tensor operator-(const Tensor& a, const Tensor& b);
Tensor operator-(const Tensor& x, double number);
Tensor operator-(double number, const Tensor& x);
/// @}
/// -x, as neg().
Tensor operator-(const Tensor& x);

/// As mul().
/// @{
Tensor operator*(const Tensor& a, const Tensor& b);
Tensor operator*(const Tensor& x, double number);
Tensor operator*(double number, const Tensor& x);
/// @}

/// As div().
/// @{
Tensor operator/(const Tensor& a, const Tensor& b);
Tensor operator/(const Tensor& x, double number);
Tensor operator/(double number, const Tensor& x);
/// @}

// Comparisons of each element, u8, as lt() and its like in autograd/functions/compare.h. Those for equality are eq()
// and ne(), so that == is not taken for a comparison of whole tensors.

/// As lt(): u8, 1 where the left operand is less.
/// @{
Tensor operator<(const Tensor& a, const Tensor& b);
Tensor operator<(const Tensor& x, double number);
Tensor operator<(double number, const Tensor& x);
/// @}

/// As le().
/// @{
Tensor operator<=(const Tensor& a, const Tensor& b);
Tensor operator<=(const Tensor& x, double number);
Tensor operator<=(double number, const Tensor& x);
/// @}

/// As gt().
/// @{
Tensor operator>(const Tensor& a, const Tensor& b);
Tensor operator>(const Tensor& x, double number);
Tensor operator>(double number, const Tensor& x);
/// @}

/// As ge().
/// @{
Tensor operator>=(const Tensor& a, const Tensor& b);
Tensor operator>=(const Tensor& x, double number);
Tensor operator>=(double number, const Tensor& x);
/// @}

}  // namespace tandem
