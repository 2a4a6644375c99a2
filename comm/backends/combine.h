// How two elements become one.
#pragma once

#include "tandem/comm/collective.h"

#include <type_traits>

namespace tandem::comm {

namespace detail {

/// Whole numbers wrap around, which signed ones of C++ do not by themselves.
template <typename T, typename Op>
T combine_wrapping(T a, T b, Op op) {
  if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    return static_cast<T>(op(static_cast<U>(a), static_cast<U>(b)));
  } else {
    return op(a, b);
  }
}

}  // namespace detail

/// Calls `visit` with the reduction as a function of two elements of T (f32, f64, i32 or i64): `average` adds. min and
/// max pass NaN on.
template <typename T, typename Visitor>
void visit_reduction(ReduceOp op, Visitor&& visit) {
  switch (op) {
    case ReduceOp::sum:
    case ReduceOp::average:
      return visit([](T a, T b) { return detail::combine_wrapping(a, b, [](auto x, auto y) { return x + y; }); });
    case ReduceOp::product:
      return visit([](T a, T b) { return detail::combine_wrapping(a, b, [](auto x, auto y) { return x * y; }); });
    case ReduceOp::min:
      return visit([](T a, T b) { return b < a || b != b ? b : a; });
    case ReduceOp::max:
      return visit([](T a, T b) { return a < b || b != b ? b : a; });
  }
}

}  // namespace tandem::comm
