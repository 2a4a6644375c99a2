// Functions of two tensors, plain loops.
#include "tandem/kernels/elementwise/binary_functions.h"
#include "tandem/kernels/elementwise/binary_implementations.h"
#include "tandem/kernels/elementwise/map.h"
#include "tandem/kernels/elementwise/standard_math.h"

namespace tandem::kernels::reference {

void binary_forward(std::string_view op, Binary function, const Tensor& a, const Tensor& b, const Out& out) {
  visit_binary(function, [&](auto formulas) {
    map(op, a, b, out, [&](auto left, auto right) { return formulas.template value<StandardMath>(left, right); });
  });
}

void binary_backward(std::string_view op, Binary function, Side side, const Tensor& a, const Tensor& b,
                     const Tensor& grad_out, const Out& grad) {
  visit_binary(function, [&](auto formulas) {
    map(op, a, b, grad_out, grad, [&](auto left, auto right, auto grad_y) {
      return side == Side::left ? formulas.template left<StandardMath>(left, right, grad_y)
                                : formulas.template right<StandardMath>(left, right, grad_y);
    });
  });
}

}  // namespace tandem::kernels::reference
