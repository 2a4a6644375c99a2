// The activations for plain loops: value(x) = f(x), gradient(x, grad) = grad f'(x), in the type of the numbers.
#pragma once

#include "tandem/kernels/activation/activation.h"

#include <cmath>
#include <numbers>
#include <tuple>

namespace tandem::kernels::reference {

namespace activations {

struct None {
  template <typename T>
  static T value(T x) {
    return x;
  }
  template <typename T>
  static T gradient(T, T grad) {
    return grad;
  }
};

/// NaN stays NaN.
struct Relu {
  template <typename T>
  static T value(T x) {
    return x < T{0} ? T{0} : x;
  }
  template <typename T>
  static T gradient(T x, T grad) {
    return x > T{0} ? grad : T{0};
  }
};

struct Gelu {
  // erfc keeps its relative accuracy where 1 + erf would cancel.
  template <typename T>
  static T normal_cdf(T x) {
    return T{0.5} * std::erfc(-x / std::numbers::sqrt2_v<T>);
  }
  template <typename T>
  static T normal_density(T x) {
    return std::exp(T{-0.5} * x * x) * std::numbers::inv_sqrtpi_v<T> / std::numbers::sqrt2_v<T>;
  }
  template <typename T>
  static T value(T x) {
    return x * normal_cdf(x);
  }
  template <typename T>
  static T gradient(T x, T grad) {
    return grad * (normal_cdf(x) + x * normal_density(x));
  }
};

struct Silu {
  template <typename T>
  static T sigmoid(T x) {
    return T{1} / (T{1} + std::exp(-x));
  }
  template <typename T>
  static T value(T x) {
    return x * sigmoid(x);
  }
  template <typename T>
  static T gradient(T x, T grad) {
    const T s = sigmoid(x);
    return grad * s * (T{1} + x * (T{1} - s));
  }
};

/// The struct of an activation.
template <Activation kActivation>
using Of = std::tuple_element_t<static_cast<std::size_t>(kActivation), std::tuple<None, Relu, Gelu, Silu>>;

}  // namespace activations

}  // namespace tandem::kernels::reference
