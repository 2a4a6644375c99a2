// Functions of one tensor, plain loops.
#include "tandem/kernels/elementwise/map.h"
#include "tandem/kernels/elementwise/standard_math.h"
#include "tandem/kernels/elementwise/unary_functions.h"
#include "tandem/kernels/elementwise/unary_implementations.h"

namespace tandem::kernels::reference {

void unary_forward(std::string_view op, Unary function, const Tensor& x, const Numbers& numbers, const Out& y) {
  visit_unary(function, [&](auto formulas) {
    map(op, x, y,
        [&](auto value) { return formulas.template value<StandardMath>(value, NumbersIn<decltype(value)>(numbers)); });
  });
}

void unary_backward(std::string_view op, Unary function, const Tensor& kept, const Tensor& grad_y,
                    const Numbers& numbers, const Out& grad_x) {
  visit_unary(function, [&](auto formulas) {
    map(op, kept, grad_y, grad_x, [&](auto value, auto grad) {
      return formulas.template gradient<StandardMath>(value, grad, NumbersIn<decltype(value)>(numbers));
    });
  });
}

}  // namespace tandem::kernels::reference
