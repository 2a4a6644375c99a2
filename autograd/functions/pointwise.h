// Differentiable functions of each element: roots, powers, exponentials, the larger of two, a choice.
// Example:
//     const Tensor x = Tensor::from<float>({0.25, 1, 4}, {3});
//     const std::vector<float> roots = sqrt(x).to_vector<float>();              // {0.5, 1, 2}
//     const std::vector<float> bounded = clamp(x, 0.5, 2).to_vector<float>();   // {0.5, 1, 2}
//     const std::vector<float> powers = pow(x, -1).to_vector<float>();          // {4, 1, 0.25}
//     const std::vector<float> larger = maximum(x, sqrt(x)).to_vector<float>();  // {0.5, 1, 4}
#pragma once

#include "tandem/core/tensor.h"

namespace tandem::autograd {

// Floating tensors of any strides. Infinities, zeros, negative numbers and NaN give what C's functions of these names
// give (log(-1) is NaN, log(0) minus infinity). exp, expm1, log, log1p, pow, reciprocal and rsqrt of halves give f32,
// because results are often beyond their range (OpKind::exponential); all others keep the dtype. Gradients are
// PyTorch's: a slope that is infinite (of sqrt and log at 0) makes an infinite gradient, or NaN of a gradient of 0.

/// e to the power of x. Keeps its output for backward.
Tensor exp(const Tensor& x);

/// exp(x) - 1, without what rounds off of it near 0. Keeps its output.
Tensor expm1(const Tensor& x);

/// The natural logarithm. Keeps x.
Tensor log(const Tensor& x);

/// log(1 + x), without what rounds off of the sum near 0. Keeps x.
Tensor log1p(const Tensor& x);

/// The square root. Keeps its output.
Tensor sqrt(const Tensor& x);

/// 1 / sqrt(x). Keeps its output.
Tensor rsqrt(const Tensor& x);

/// 1 / x. Keeps its output.
Tensor reciprocal(const Tensor& x);

/// |x|, with a gradient of 0 at 0. Keeps x.
Tensor abs(const Tensor& x);

/// x cut off to [min, max] (either may be infinite); max where min > max. The gradient passes where min < x < max: at
/// both ends it is 0, as in PyTorch 2.15 (older ones have 1 there). Keeps x. Throws Error where min or max is NaN.
Tensor clamp(const Tensor& x, double min, double max);

/// x where it is greater than min, else min: clamp() without the upper end.
Tensor clamp_min(const Tensor& x, double min);

/// x where it is less than max, else max: clamp() without the lower end.
Tensor clamp_max(const Tensor& x, double max);

/// x to the power of a number: 1 for the power of 0, whatever x is; NaN for x < 0 unless the number is whole. The
/// power of 2 is x x; those of 1/2, -1 and -1/2 are sqrt(), reciprocal() and rsqrt(). Keeps x or its output.
Tensor pow(const Tensor& x, double exponent);

/// a to the power of b, likewise; shapes broadcast as in add(). The gradient of a is 0 where b is 0; that of b is 0
/// where a is 0 and b is not negative, and NaN where a is negative. Keeps a and b.
Tensor pow(const Tensor& a, const Tensor& b);

/// A number to the power of x, likewise. Keeps x.
Tensor pow(double base, const Tensor& x);

/// The larger of each pair, NaN if one of them is; shapes broadcast as in add(). Equal ones get half of the gradient
/// each. A number is rounded to the dtype of the tensor. Keeps a and b.
Tensor maximum(const Tensor& a, const Tensor& b);
Tensor maximum(const Tensor& x, double number);
Tensor maximum(double number, const Tensor& x);

/// The smaller of each pair, likewise.
Tensor minimum(const Tensor& a, const Tensor& b);
Tensor minimum(const Tensor& x, double number);
Tensor minimum(double number, const Tensor& x);

/// a where the condition is not 0, else b. The condition is u8, as gt() and other comparisons make it, a and b of one
/// dtype, whichever it is; all three on one device, and their shapes broadcast as in add(). One of a and b may be a
/// number, of the other's dtype. Keeps the condition. Example:
///     const Tensor mask = Tensor::from<std::uint8_t>({1, 0, 1}, {3}), x = Tensor::from<float>({1, 2, 3}, {3});
///     const std::vector<float> chosen = where(mask, x, 0).to_vector<float>();  // {1, 0, 3}
Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b);
Tensor where(const Tensor& condition, const Tensor& a, double b);
Tensor where(const Tensor& condition, double a, const Tensor& b);

}  // namespace tandem::autograd
