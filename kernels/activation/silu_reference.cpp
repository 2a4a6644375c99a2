// SiLU, plain loops.
#include "tandem/kernels/activation/silu_implementations.h"
#include "tandem/kernels/elementwise/map.h"

#include <cmath>

namespace tandem::kernels::reference {

namespace {

template <typename T>
T sigmoid(T x) {
  return T{1} / (T{1} + std::exp(-x));
}

}  // namespace

void silu_forward(const Tensor& x, const Out& y) {
  map("silu_forward", x, y, [](auto value) { return value * sigmoid(value); });
}

void silu_backward(const Tensor& x, const Tensor& grad_y, const Out& grad_x) {
  map("silu_backward", x, grad_y, grad_x, [](auto value, auto grad) {
    const auto s = sigmoid(value);
    return grad * s * (1 + value * (1 - s));
  });
}

}  // namespace tandem::kernels::reference
