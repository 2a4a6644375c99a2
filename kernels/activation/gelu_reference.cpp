// GELU, plain loops.
#include "tandem/kernels/activation/gelu_implementations.h"
#include "tandem/kernels/elementwise/map.h"

#include <cmath>
#include <numbers>

namespace tandem::kernels::reference {

namespace {

// erfc keeps its relative accuracy where 1 + erf would cancel.
template <typename T>
T normal_cdf(T x) {
  return T{0.5} * std::erfc(-x / std::numbers::sqrt2_v<T>);
}

template <typename T>
T normal_density(T x) {
  return std::exp(T{-0.5} * x * x) * std::numbers::inv_sqrtpi_v<T> / std::numbers::sqrt2_v<T>;
}

}  // namespace

void gelu_forward(const Tensor& x, const Out& y) {
  map("gelu_forward", x, y, [](auto value) { return value * normal_cdf(value); });
}

void gelu_backward(const Tensor& x, const Tensor& grad_y, const Out& grad_x) {
  map("gelu_backward", x, grad_y, grad_x,
      [](auto value, auto grad) { return grad * (normal_cdf(value) + value * normal_density(value)); });
}

}  // namespace tandem::kernels::reference
