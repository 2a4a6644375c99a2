// The formulas of binary.h, each once: for plain loops, for vectors and for GPUs; see unary_functions.h.
#pragma once

#include "tandem/kernels/elementwise/binary.h"

namespace tandem::kernels {

namespace functions {

struct Sub {
  static constexpr Needs kLeftNeeds{false, false}, kRightNeeds{false, false};
  template <typename Math, typename T>
  static constexpr T value(T a, T b) {
    return a - b;
  }
  template <typename Math, typename T>
  static constexpr T left(T, T, T grad) {
    return grad;
  }
  template <typename Math, typename T>
  static constexpr T right(T, T, T grad) {
    return -grad;
  }
};

struct Div {
  static constexpr Needs kLeftNeeds{false, true}, kRightNeeds{true, true};
  template <typename Math, typename T>
  static constexpr T value(T a, T b) {
    return a / b;
  }
  template <typename Math, typename T>
  static constexpr T left(T, T b, T grad) {
    return grad / b;
  }
  template <typename Math, typename T>
  static constexpr T right(T a, T b, T grad) {
    return -grad * (a / b / b);
  }
};

struct Pow {
  static constexpr Needs kLeftNeeds{true, true}, kRightNeeds{true, true};
  template <typename Math, typename T>
  static constexpr T value(T a, T b) {
    return Math::pow(a, b);
  }
  template <typename Math, typename T>
  static constexpr T left(T a, T b, T grad) {
    // For b = 0 the slope is 0 even where a to the power of -1 is infinite.
    return grad * (b * Math::pow(a, Math::select(b == T{0}, T{0}, b - T{1})));
  }
  template <typename Math, typename T>
  static constexpr T right(T a, T b, T grad) {
    // log 0 is infinite, but times a power of 0 it goes to 0.
    return grad * (Math::pow(a, b) * Math::log(Math::select((a == T{0}) & (b >= T{0}), T{1}, a)));
  }
};

struct Maximum {
  static constexpr Needs kLeftNeeds{true, true}, kRightNeeds{true, true};
  template <typename Math, typename T>
  static constexpr T value(T a, T b) {
    const T larger = Math::select(a > b, a, b);  // b where one of them is NaN
    return Math::select(a != a, a, larger);
  }
  template <typename Math, typename T>
  static constexpr T left(T a, T b, T grad) {
    return Math::select(a < b, T{0}, Math::select(a == b, grad / T{2}, grad));
  }
  template <typename Math, typename T>
  static constexpr T right(T a, T b, T grad) {
    return left<Math>(b, a, grad);
  }
};

struct Minimum {
  static constexpr Needs kLeftNeeds{true, true}, kRightNeeds{true, true};
  template <typename Math, typename T>
  static constexpr T value(T a, T b) {
    const T smaller = Math::select(a < b, a, b);  // b where one of them is NaN
    return Math::select(a != a, a, smaller);
  }
  template <typename Math, typename T>
  static constexpr T left(T a, T b, T grad) {
    return Maximum::left<Math>(b, a, grad);
  }
  template <typename Math, typename T>
  static constexpr T right(T a, T b, T grad) {
    return Maximum::left<Math>(a, b, grad);
  }
};

}  // namespace functions

/// Calls `visit` with the struct of `function`.
template <typename Visitor>
constexpr decltype(auto) visit_binary(Binary function, Visitor&& visit) {
  switch (function) {
    case Binary::sub:
      return visit(functions::Sub{});
    case Binary::div:
      return visit(functions::Div{});
    case Binary::pow:
      return visit(functions::Pow{});
    case Binary::maximum:
      return visit(functions::Maximum{});
    case Binary::minimum:
      break;
  }
  return visit(functions::Minimum{});
}

}  // namespace tandem::kernels
