// Functions of two tensors, element by element, as one family. Sums and products have files of their own.
//
// A function is a value of Binary, a struct of binary_functions.h with its formulas, and a case of visit_binary there.
#pragma once

#include "tandem/core/out.h"

#include <cstdint>
#include <string_view>

namespace tandem::kernels {

/// What is computed of a and b.
enum class Binary : std::uint8_t {
  sub,                     // a - b
  div,                     // a / b
  pow,                     // a to the power of b
  maximum,                 // the larger; NaN if one of them is
  minimum,                 // the smaller; NaN if one of them is
  squared_difference,      // (a - b) squared
  absolute_difference,     // |a - b|
  cross_entropy_of_logit,  // -b log(sigmoid(a)) - (1 - b) log(1 - sigmoid(a)), of a logit a and a target b
};

/// Which operand a gradient is for.
enum class Side : std::uint8_t { left, right };

/// What the gradient for a side is computed from, beside the gradient of the result.
struct Needs {
  bool a = true, b = true;
};
Needs needed_by(Binary function, Side side);

/// out = function(a, b), computed in f32 for the half types, and rounded once. All of one shape, floating dtype and
/// device; `a` and `b` of any strides (0 for broadcast dimensions: see Tensor::expand), `out` dense; it may be the same
/// elements as `a` or `b`. NaN, infinities and zeros give what C's operators and pow() give. Throws Error that begins
/// with `op` where that does not hold.
void binary_forward(std::string_view op, Binary function, const Tensor& a, const Tensor& b, const Out& out);

/// grad = grad_out times the slope in a or b. What needed_by() says is not needed may be any tensor of that shape. As
/// in PyTorch, equal operands of maximum and minimum get half of the gradient each; the slope of pow in b is 0 where
/// a is 0 and b is not negative, and its slope in a is 0 where b is 0; that of absolute_difference is 0 where a = b.
void binary_backward(std::string_view op, Binary function, Side side, const Tensor& a, const Tensor& b,
                     const Tensor& grad_out, const Out& grad);

}  // namespace tandem::kernels
