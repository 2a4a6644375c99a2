// Functions of one tensor, element by element, as one family: exp, log, sqrt, tanh and the like.
//
// A function is a value of Unary, a struct of unary_functions.h with its formulas, and a case of visit_unary there.
#pragma once

#include "tandem/core/out.h"

#include <cstdint>
#include <string_view>

namespace tandem::kernels {

/// What is computed of x; a and b are the Numbers.
enum class Unary : std::uint8_t {
  exp,
  expm1,  // exp(x) - 1
  log,
  log1p,  // log(1 + x)
  sqrt,
  rsqrt,          // 1 / sqrt(x)
  reciprocal,     // 1 / x
  square,         // x x
  abs,            // |x|
  tanh,           // hyperbolic tangent
  sigmoid,        // 1 / (1 + exp(-x))
  softplus,       // log(1 + exp(a x)) / a
  leaky_relu,     // x where x > 0, else a x
  celu,           // x where x > 0, else a (exp(x / a) - 1), for a > 0
  hardswish,      // x min(max(x + 3, 0), 6) / 6
  clamp,          // x cut off to [a, b]; b where a > b; NaN for an end that is not there
  pow_number,     // x to the power of a
  add_number,     // x + a
  subtract_from,  // a - x
  divide_by,      // x / a
  divide_into,    // a / x
};

/// Options of a function, those that it has.
struct Numbers {
  double a = 0.0, b = 0.0;
};

/// What the gradient is computed from, beside the gradient of the result.
enum class Keep : std::uint8_t { nothing, input, output };

Keep kept_by(Unary function);

/// y = function(x), computed in f32 for the half types, and rounded once. All of one shape, floating dtype and device;
/// `x` of any strides, `y` dense; they may be the same elements. NaN gives NaN (but x to the power of 0 is 1), and
/// infinities and zeros what C's functions of these names give. Numbers are rounded to the type that is computed in.
/// Throws Error that begins with `op` where that does not hold.
void unary_forward(std::string_view op, Unary function, const Tensor& x, const Numbers& numbers, const Out& y);

/// grad_x = grad_y times the slope of the function; `kept` is x or y, as kept_by() says, and any tensor of that shape
/// for Keep::nothing. Kinks as in PyTorch: the slope of abs is 0 at 0, that of clamp 0 at both ends (PyTorch 2.15),
/// that of leaky_relu a at 0, that of celu 1, that of hardswish 0 at -3 and 1 at 3. Where a slope is infinite (sqrt at
/// 0), so is the gradient.
void unary_backward(std::string_view op, Unary function, const Tensor& kept, const Tensor& grad_y,
                    const Numbers& numbers, const Out& grad_x);

}  // namespace tandem::kernels
