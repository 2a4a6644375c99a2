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

struct SquaredDifference {
  static constexpr Needs kLeftNeeds{true, true}, kRightNeeds{true, true};
  template <typename Math, typename T>
  static constexpr T value(T a, T b) {
    return (a - b) * (a - b);
  }
  template <typename Math, typename T>
  static constexpr T left(T a, T b, T grad) {
    return T{2} * (a - b) * grad;
  }
  template <typename Math, typename T>
  static constexpr T right(T a, T b, T grad) {
    return left<Math>(b, a, grad);
  }
};

struct AbsoluteDifference {
  static constexpr Needs kLeftNeeds{true, true}, kRightNeeds{true, true};
  template <typename Math, typename T>
  static constexpr T value(T a, T b) {
    return Math::abs(a - b);
  }
  template <typename Math, typename T>
  static constexpr T left(T a, T b, T grad) {
    return Math::select(a > b, grad, Math::select(a < b, -grad, T{0}));
  }
  template <typename Math, typename T>
  static constexpr T right(T a, T b, T grad) {
    return left<Math>(b, a, grad);
  }
};

struct CrossEntropyOfLogit {
  static constexpr Needs kLeftNeeds{true, true}, kRightNeeds{true, false};
  template <typename Math, typename T>
  static constexpr T value(T a, T b) {
    // Neither term of the sum is negative, so that nothing cancels.
    const T above = Math::select(a > T{0}, a, T{0}), below = Math::select(a > T{0}, T{0}, -a);
    return above * (T{1} - b) + below * b + Math::log1p_exp(-Math::abs(a));
  }
  template <typename Math, typename T>
  static constexpr T left(T a, T b, T grad) {
    const T small = Math::exp(-Math::abs(a));
    return (Math::select(a < T{0}, small, T{1}) / (T{1} + small) - b) * grad;
  }
  template <typename Math, typename T>
  static constexpr T right(T a, T, T grad) {
    return -a * grad;
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
      return visit(functions::Minimum{});
    case Binary::squared_difference:
      return visit(functions::SquaredDifference{});
    case Binary::absolute_difference:
      return visit(functions::AbsoluteDifference{});
    case Binary::cross_entropy_of_logit:
      break;
  }
  return visit(functions::CrossEntropyOfLogit{});
}

}  // namespace tandem::kernels
