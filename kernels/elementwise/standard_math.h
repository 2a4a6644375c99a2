// The C++ library's functions for the formulas of unary_functions.h and binary_functions.h: what references compute by.
#pragma once

#include <cmath>

namespace tandem::kernels::reference {

struct StandardMath {
  template <typename T>
  static T exp(T x) {
    return std::exp(x);
  }
  /// exp(x) for x <= 0.
  template <typename T>
  static T exp_of_negative(T x) {
    return std::exp(x);
  }
  template <typename T>
  static T expm1(T x) {
    return std::expm1(x);
  }
  template <typename T>
  static T log(T x) {
    return std::log(x);
  }
  template <typename T>
  static T log1p(T x) {
    return std::log1p(x);
  }
  /// log(1 + exp(x)) for x <= 0.
  template <typename T>
  static T log1p_exp(T x) {
    return std::log1p(std::exp(x));
  }
  template <typename T>
  static T sqrt(T x) {
    return std::sqrt(x);
  }
  template <typename T>
  static T tanh(T x) {
    return std::tanh(x);
  }
  template <typename T>
  static T abs(T x) {
    return std::abs(x);
  }
  template <typename T>
  static T pow(T x, T y) {
    return std::pow(x, y);
  }
  /// `condition ? yes : no`.
  template <typename T>
  static T select(bool condition, T yes, T no) {
    return condition ? yes : no;
  }
};

}  // namespace tandem::kernels::reference
