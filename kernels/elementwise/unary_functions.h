// The formulas of unary.h, each once: for plain loops, for vectors and for GPUs. What these differ in is `Math`, where
// exp, exp_of_negative, expm1, log, log1p, log1p_exp, sqrt, tanh, pow and abs come from, and select(condition, yes,
// no), for loops without branches.
//
// constexpr, so that nvcc takes them for device code as well.
#pragma once

#include "tandem/kernels/elementwise/unary.h"

namespace tandem::kernels {

/// Numbers in the type that is computed in.
template <typename T>
struct NumbersIn {
  constexpr explicit NumbersIn(const Numbers& numbers) : a(static_cast<T>(numbers.a)), b(static_cast<T>(numbers.b)) {}

  T a, b;
};

namespace functions {

struct Exp {
  static constexpr Keep kKeep = Keep::output;
  template <typename Math, typename T>
  static constexpr T value(T x, const NumbersIn<T>&) {
    return Math::exp(x);
  }
  template <typename Math, typename T>
  static constexpr T gradient(T y, T grad, const NumbersIn<T>&) {
    return grad * y;
  }
};

struct Expm1 {
  static constexpr Keep kKeep = Keep::output;
  template <typename Math, typename T>
  static constexpr T value(T x, const NumbersIn<T>&) {
    return Math::expm1(x);
  }
  template <typename Math, typename T>
  static constexpr T gradient(T y, T grad, const NumbersIn<T>&) {
    return grad * (y + T{1});
  }
};

struct Log {
  static constexpr Keep kKeep = Keep::input;
  template <typename Math, typename T>
  static constexpr T value(T x, const NumbersIn<T>&) {
    return Math::log(x);
  }
  template <typename Math, typename T>
  static constexpr T gradient(T x, T grad, const NumbersIn<T>&) {
    return grad / x;
  }
};

struct Log1p {
  static constexpr Keep kKeep = Keep::input;
  template <typename Math, typename T>
  static constexpr T value(T x, const NumbersIn<T>&) {
    return Math::log1p(x);
  }
  template <typename Math, typename T>
  static constexpr T gradient(T x, T grad, const NumbersIn<T>&) {
    return grad / (x + T{1});
  }
};

struct Sqrt {
  static constexpr Keep kKeep = Keep::output;
  template <typename Math, typename T>
  static constexpr T value(T x, const NumbersIn<T>&) {
    return Math::sqrt(x);
  }
  template <typename Math, typename T>
  static constexpr T gradient(T y, T grad, const NumbersIn<T>&) {
    return grad / (T{2} * y);
  }
};

struct Rsqrt {
  static constexpr Keep kKeep = Keep::output;
  template <typename Math, typename T>
  static constexpr T value(T x, const NumbersIn<T>&) {
    return T{1} / Math::sqrt(x);
  }
  template <typename Math, typename T>
  static constexpr T gradient(T y, T grad, const NumbersIn<T>&) {
    return T{-0.5} * grad * (y * y * y);
  }
};

struct Reciprocal {
  static constexpr Keep kKeep = Keep::output;
  template <typename Math, typename T>
  static constexpr T value(T x, const NumbersIn<T>&) {
    return T{1} / x;
  }
  template <typename Math, typename T>
  static constexpr T gradient(T y, T grad, const NumbersIn<T>&) {
    return -grad * (y * y);
  }
};

struct Square {
  static constexpr Keep kKeep = Keep::input;
  template <typename Math, typename T>
  static constexpr T value(T x, const NumbersIn<T>&) {
    return x * x;
  }
  template <typename Math, typename T>
  static constexpr T gradient(T x, T grad, const NumbersIn<T>&) {
    return T{2} * grad * x;
  }
};

struct Abs {
  static constexpr Keep kKeep = Keep::input;
  template <typename Math, typename T>
  static constexpr T value(T x, const NumbersIn<T>&) {
    return Math::abs(x);
  }
  template <typename Math, typename T>
  static constexpr T gradient(T x, T grad, const NumbersIn<T>&) {
    return Math::select(x > T{0}, grad, Math::select(x < T{0}, -grad, T{0}));
  }
};

struct Tanh {
  static constexpr Keep kKeep = Keep::output;
  template <typename Math, typename T>
  static constexpr T value(T x, const NumbersIn<T>&) {
    return Math::tanh(x);
  }
  template <typename Math, typename T>
  static constexpr T gradient(T y, T grad, const NumbersIn<T>&) {
    return grad * (T{1} - y * y);
  }
};

struct Sigmoid {
  static constexpr Keep kKeep = Keep::output;
  template <typename Math, typename T>
  static constexpr T value(T x, const NumbersIn<T>&) {
    const T small = Math::exp_of_negative(-Math::abs(x));
    return Math::select(x < T{0}, small, T{1}) / (T{1} + small);
  }
  template <typename Math, typename T>
  static constexpr T gradient(T y, T grad, const NumbersIn<T>&) {
    return grad * (T{1} - y) * y;
  }
};

struct Softplus {
  static constexpr Keep kKeep = Keep::input;
  template <typename Math, typename T>
  static constexpr T value(T x, const NumbersIn<T>& numbers) {
    const T scaled = x * numbers.a;  // may be infinite, where the result is not
    return Math::select(scaled > T{0}, x, T{0}) + Math::log1p_exp(-Math::abs(scaled)) / numbers.a;
  }
  template <typename Math, typename T>
  static constexpr T gradient(T x, T grad, const NumbersIn<T>& numbers) {
    return grad * Sigmoid::value<Math>(x * numbers.a, numbers);
  }
};

struct LeakyRelu {
  static constexpr Keep kKeep = Keep::input;
  template <typename Math, typename T>
  static constexpr T value(T x, const NumbersIn<T>& numbers) {
    return Math::select(x > T{0}, x, x * numbers.a);
  }
  template <typename Math, typename T>
  static constexpr T gradient(T x, T grad, const NumbersIn<T>& numbers) {
    return Math::select(x > T{0}, grad, grad * numbers.a);
  }
};

struct Celu {
  static constexpr Keep kKeep = Keep::input;
  template <typename Math, typename T>
  static constexpr T value(T x, const NumbersIn<T>& numbers) {
    const T below = Math::select(x > T{0}, T{0}, x);
    return Math::select(x > T{0}, x, numbers.a * Math::expm1(below / numbers.a));
  }
  template <typename Math, typename T>
  static constexpr T gradient(T x, T grad, const NumbersIn<T>& numbers) {
    const T below = Math::select(x > T{0}, T{0}, x);
    return Math::select(x > T{0}, grad, grad * Math::exp_of_negative(below / numbers.a));
  }
};

struct Hardswish {
  static constexpr Keep kKeep = Keep::input;
  template <typename Math, typename T>
  static constexpr T value(T x, const NumbersIn<T>&) {
    const T moved = x + T{3}, above_zero = Math::select(moved < T{0}, T{0}, moved);
    return x * Math::select(above_zero > T{6}, T{6}, above_zero) / T{6};
  }
  template <typename Math, typename T>
  static constexpr T gradient(T x, T grad, const NumbersIn<T>&) {
    const T below_three = Math::select(x <= T{-3}, T{0}, grad * (x / T{3} + T{0.5}));
    return Math::select(x >= T{3}, grad, below_three);
  }
};

struct Clamp {
  static constexpr Keep kKeep = Keep::input;
  template <typename Math, typename T>
  static constexpr T value(T x, const NumbersIn<T>& numbers) {
    const T above = Math::select(x < numbers.a, numbers.a, x);
    return Math::select(above > numbers.b, numbers.b, above);
  }
  template <typename Math, typename T>
  static constexpr T gradient(T x, T grad, const NumbersIn<T>& numbers) {
    const bool is_above = (x > numbers.a) | (numbers.a != numbers.a);
    return Math::select(is_above & ((x < numbers.b) | (numbers.b != numbers.b)), grad, T{0});
  }
};

struct PowNumber {
  static constexpr Keep kKeep = Keep::input;
  template <typename Math, typename T>
  static constexpr T value(T x, const NumbersIn<T>& numbers) {
    return Math::pow(x, numbers.a);
  }
  template <typename Math, typename T>
  static constexpr T gradient(T x, T grad, const NumbersIn<T>& numbers) {
    // For a = 0 the slope is 0 even where x to the power of -1 is infinite.
    const T lowered = Math::select(numbers.a == T{0}, T{0}, numbers.a - T{1});
    return grad * (numbers.a * Math::pow(x, lowered));
  }
};

struct AddNumber {
  static constexpr Keep kKeep = Keep::nothing;
  template <typename Math, typename T>
  static constexpr T value(T x, const NumbersIn<T>& numbers) {
    return x + numbers.a;
  }
  template <typename Math, typename T>
  static constexpr T gradient(T, T grad, const NumbersIn<T>&) {
    return grad;
  }
};

struct SubtractFrom {
  static constexpr Keep kKeep = Keep::nothing;
  template <typename Math, typename T>
  static constexpr T value(T x, const NumbersIn<T>& numbers) {
    return numbers.a - x;
  }
  template <typename Math, typename T>
  static constexpr T gradient(T, T grad, const NumbersIn<T>&) {
    return -grad;
  }
};

struct DivideBy {
  static constexpr Keep kKeep = Keep::nothing;
  template <typename Math, typename T>
  static constexpr T value(T x, const NumbersIn<T>& numbers) {
    return x / numbers.a;
  }
  template <typename Math, typename T>
  static constexpr T gradient(T, T grad, const NumbersIn<T>& numbers) {
    return grad / numbers.a;
  }
};

struct DivideInto {
  static constexpr Keep kKeep = Keep::input;
  template <typename Math, typename T>
  static constexpr T value(T x, const NumbersIn<T>& numbers) {
    return numbers.a / x;
  }
  template <typename Math, typename T>
  static constexpr T gradient(T x, T grad, const NumbersIn<T>& numbers) {
    return -grad * (numbers.a / x / x);
  }
};

}  // namespace functions

/// Calls `visit` with the struct of `function`.
template <typename Visitor>
constexpr decltype(auto) visit_unary(Unary function, Visitor&& visit) {
  using namespace functions;
  switch (function) {
    case Unary::exp:
      return visit(Exp{});
    case Unary::expm1:
      return visit(Expm1{});
    case Unary::log:
      return visit(Log{});
    case Unary::log1p:
      return visit(Log1p{});
    case Unary::sqrt:
      return visit(Sqrt{});
    case Unary::rsqrt:
      return visit(Rsqrt{});
    case Unary::reciprocal:
      return visit(Reciprocal{});
    case Unary::square:
      return visit(Square{});
    case Unary::abs:
      return visit(Abs{});
    case Unary::tanh:
      return visit(Tanh{});
    case Unary::sigmoid:
      return visit(Sigmoid{});
    case Unary::softplus:
      return visit(Softplus{});
    case Unary::leaky_relu:
      return visit(LeakyRelu{});
    case Unary::celu:
      return visit(Celu{});
    case Unary::hardswish:
      return visit(Hardswish{});
    case Unary::clamp:
      return visit(Clamp{});
    case Unary::pow_number:
      return visit(PowNumber{});
    case Unary::add_number:
      return visit(AddNumber{});
    case Unary::subtract_from:
      return visit(SubtractFrom{});
    case Unary::divide_by:
      return visit(DivideBy{});
    case Unary::divide_into:
      break;
  }
  return visit(DivideInto{});
}

}  // namespace tandem::kernels
