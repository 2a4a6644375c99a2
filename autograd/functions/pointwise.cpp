// Differentiable functions of each element.
#include "tandem/autograd/functions/pointwise.h"

#include "tandem/autograd/functions/binary.h"
#include "tandem/autograd/functions/broadcast.h"
#include "tandem/autograd/functions/cast.h"
#include "tandem/autograd/functions/operand.h"
#include "tandem/autograd/functions/unary.h"
#include "tandem/autograd/precision.h"
#include "tandem/autograd/record.h"
#include "tandem/core/describe.h"
#include "tandem/kernels/elementwise/where.h"

#include <cmath>
#include <limits>
#include <string_view>

namespace tandem::autograd {

using kernels::Binary;
using kernels::Unary;

namespace {

constexpr double kNoEnd = std::numeric_limits<double>::quiet_NaN();

/// What exponential functions compute of x; of no tensor none, which they refuse.
Tensor widened(const Tensor& x) { return x.defined() ? cast(x, result_dtype(OpKind::exponential, x.dtype())) : x; }

/// The number for a function of two tensors, the other of which must be floating.
Tensor number_of(std::string_view op, double number, const Tensor& x) {
  require_floating(op, x);
  return unrecorded([&] { return number_beside(op, number, x); });
}

}  // namespace

Tensor exp(const Tensor& x) { return unary("exp", Unary::exp, x); }
Tensor expm1(const Tensor& x) { return unary("expm1", Unary::expm1, x); }
Tensor log(const Tensor& x) { return unary("log", Unary::log, x); }
Tensor log1p(const Tensor& x) { return unary("log1p", Unary::log1p, x); }
Tensor sqrt(const Tensor& x) { return unary("sqrt", Unary::sqrt, x); }
Tensor rsqrt(const Tensor& x) { return unary("rsqrt", Unary::rsqrt, x); }
Tensor reciprocal(const Tensor& x) { return unary("reciprocal", Unary::reciprocal, x); }
Tensor abs(const Tensor& x) { return unary("abs", Unary::abs, x); }

Tensor clamp(const Tensor& x, double min, double max) {
  require(!std::isnan(min) && !std::isnan(max), "clamp: min and max must be numbers or infinite, got {} and {}", min,
          max);
  return unary("clamp", Unary::clamp, x, {min, max});
}

Tensor clamp_min(const Tensor& x, double min) {
  require(!std::isnan(min), "clamp_min: min must be a number or infinite, got {}", min);
  return unary("clamp_min", Unary::clamp, x, {min, kNoEnd});
}

Tensor clamp_max(const Tensor& x, double max) {
  require(!std::isnan(max), "clamp_max: max must be a number or infinite, got {}", max);
  return unary("clamp_max", Unary::clamp, x, {kNoEnd, max});
}

Tensor pow(const Tensor& x, double exponent) {
  require_defined("pow", x);
  const Tensor wide = widened(x);
  if (exponent == 2.0) return unary("pow", Unary::square, wide);
  if (exponent == 0.5) return unary("pow", Unary::sqrt, wide);
  if (exponent == -1.0) return unary("pow", Unary::reciprocal, wide);
  if (exponent == -0.5) return unary("pow", Unary::rsqrt, wide);
  return unary("pow", Unary::pow_number, wide, {exponent});
}

Tensor pow(const Tensor& a, const Tensor& b) { return binary("pow", Binary::pow, widened(a), widened(b)); }

Tensor pow(double base, const Tensor& x) {
  const Tensor wide = widened(x);
  return binary("pow", Binary::pow, number_of("pow", base, wide), wide);
}

Tensor maximum(const Tensor& a, const Tensor& b) { return binary("maximum", Binary::maximum, a, b); }
Tensor maximum(const Tensor& x, double number) { return maximum(x, number_of("maximum", number, x)); }
Tensor maximum(double number, const Tensor& x) { return maximum(number_of("maximum", number, x), x); }
Tensor minimum(const Tensor& a, const Tensor& b) { return binary("minimum", Binary::minimum, a, b); }
Tensor minimum(const Tensor& x, double number) { return minimum(x, number_of("minimum", number, x)); }
Tensor minimum(double number, const Tensor& x) { return minimum(number_of("minimum", number, x), x); }

Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b) {
  require(condition.defined(), "where: needs a condition, a u8 tensor (0 or not), got {}", condition);
  require(condition.dtype() == DType::u8, "where: the condition must be a u8 tensor (0 or not), got {}; use cast",
          condition);
  Tensor mask;  // the condition as large as the result
  const Tensor y = unrecorded([&] {
    const Broadcast operands = broadcast("where", a, b);
    const std::optional<Shape> shape = broadcast_shape(operands.out.shape(), condition.shape());
    require(shape.has_value(), "where: condition {}, a {} and b {} do not broadcast; reshape or expand one", condition,
            a, b);
    mask = condition.expand(*shape);
    Tensor out = *shape == operands.out.shape() ? operands.out : broadcast_output(*shape, a, b);
    kernels::where(mask, operands.a.expand(*shape), operands.b.expand(*shape), Out(out));
    return out;
  });
  if (!should_record({a, b})) return y;
  return record("where", {a, b}, y,
                [saved = SavedTensor(mask), a_shape = a.shape(), b_shape = b.shape()](const BackwardContext& context) {
                  const Tensor& grad = context.grad_output();
                  const auto gradient = [&](bool chosen, const Shape& shape) {
                    const Tensor masked = empty_like(grad);
                    kernels::where_backward(saved.get(), chosen, grad, Out(masked));
                    return sum_to_shape(masked, shape);
                  };
                  return std::vector<Tensor>{context.needs(0) ? gradient(true, a_shape) : Tensor(),
                                             context.needs(1) ? gradient(false, b_shape) : Tensor()};
                });
}

namespace {

Tensor number_for_where(double number, const Tensor& other) {
  require(other.defined(), "where: a and b must be tensors or one of them a number, got {}", other);
  return unrecorded([&] { return number_beside("where", number, other); });
}

}  // namespace

Tensor where(const Tensor& condition, const Tensor& a, double b) { return where(condition, a, number_for_where(b, a)); }
Tensor where(const Tensor& condition, double a, const Tensor& b) { return where(condition, number_for_where(a, b), b); }

}  // namespace tandem::autograd
