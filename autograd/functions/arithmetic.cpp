// Differentiable arithmetic.
#include "tandem/autograd/functions/arithmetic.h"

#include "tandem/autograd/functions/binary.h"
#include "tandem/autograd/functions/broadcast.h"
#include "tandem/autograd/functions/operand.h"
#include "tandem/autograd/functions/unary.h"
#include "tandem/autograd/record.h"
#include "tandem/kernels/elementwise/add.h"
#include "tandem/kernels/elementwise/mul.h"
#include "tandem/kernels/elementwise/scale.h"

namespace tandem::autograd {

namespace {

Tensor product(const Tensor& a, const Tensor& b) {
  const Tensor result = a.is_dense() ? empty_like(a) : empty_like(b);
  kernels::mul(a, b, Out(result));
  return result;
}

}  // namespace

Tensor add(const Tensor& a, const Tensor& b) {
  const Tensor y = unrecorded([&] {
    const Broadcast operands = broadcast("add", a, b);
    kernels::add(operands.a, operands.b, Out(operands.out));
    return operands.out;
  });
  return record("add", {a, b}, y, [a_shape = a.shape(), b_shape = b.shape()](const BackwardContext& context) {
    const Tensor& grad = context.grad_output();
    return std::vector<Tensor>{context.needs(0) ? sum_to_shape(grad, a_shape) : Tensor(),
                               context.needs(1) ? sum_to_shape(grad, b_shape) : Tensor()};
  });
}

Tensor mul(const Tensor& a, const Tensor& b) {
  const Tensor y = unrecorded([&] {
    const Broadcast operands = broadcast("mul", a, b);
    kernels::mul(operands.a, operands.b, Out(operands.out));
    return operands.out;
  });
  if (!should_record({a, b})) return y;
  // Each operand is kept only for the other's gradient.
  const SavedTensor saved_a = requires_grad(b) ? SavedTensor(a) : SavedTensor();
  const SavedTensor saved_b = requires_grad(a) ? SavedTensor(b) : SavedTensor();
  return record("mul", {a, b}, y,
                [saved_a, saved_b, a_shape = a.shape(), b_shape = b.shape()](const BackwardContext& context) {
                  const Tensor& grad = context.grad_output();
                  std::vector<Tensor> result(2);
                  if (context.needs(0))
                    result[0] = sum_to_shape(product(grad, saved_b.get().expand(grad.shape())), a_shape);
                  if (context.needs(1))
                    result[1] = sum_to_shape(product(grad, saved_a.get().expand(grad.shape())), b_shape);
                  return result;
                });
}

Tensor scale(const Tensor& x, double factor) {
  require_defined("scale", x);
  const Tensor y = empty_like(x);
  unrecorded([&] { kernels::scale(x, factor, Out(y)); });
  return record("scale", {x}, y, [factor](const BackwardContext& context) {
    const Tensor grad_x = empty_like(context.grad_output());
    kernels::scale(context.grad_output(), factor, Out(grad_x));
    return std::vector<Tensor>{grad_x};
  });
}

Tensor sub(const Tensor& a, const Tensor& b) { return binary("sub", kernels::Binary::sub, a, b); }
Tensor div(const Tensor& a, const Tensor& b) { return binary("div", kernels::Binary::div, a, b); }

Tensor add(const Tensor& x, double number) { return unary("add", kernels::Unary::add_number, x, {number}); }
Tensor sub(const Tensor& x, double number) { return unary("sub", kernels::Unary::add_number, x, {-number}); }
Tensor sub(double number, const Tensor& x) { return unary("sub", kernels::Unary::subtract_from, x, {number}); }
Tensor mul(const Tensor& x, double number) { return scale(x, number); }
Tensor div(const Tensor& x, double number) { return unary("div", kernels::Unary::divide_by, x, {number}); }
Tensor div(double number, const Tensor& x) { return unary("div", kernels::Unary::divide_into, x, {number}); }

// -0 less x has the other sign for zeros, too.
Tensor neg(const Tensor& x) { return unary("neg", kernels::Unary::subtract_from, x, {-0.0}); }

}  // namespace tandem::autograd
