// The implementations of compare.h, which its dispatcher chooses from.
#pragma once

#include "tandem/kernels/elementwise/compare.h"

namespace tandem::kernels {

/// Calls `visit` with the comparison as a function of two numbers.
template <typename Visitor>
constexpr decltype(auto) visit_comparison(Comparison comparison, Visitor&& visit) {
  switch (comparison) {
    case Comparison::eq:
      return visit([](auto a, auto b) { return a == b; });
    case Comparison::ne:
      return visit([](auto a, auto b) { return a != b; });
    case Comparison::lt:
      return visit([](auto a, auto b) { return a < b; });
    case Comparison::le:
      return visit([](auto a, auto b) { return a <= b; });
    case Comparison::gt:
      return visit([](auto a, auto b) { return a > b; });
    case Comparison::ge:
      return visit([](auto a, auto b) { return a >= b; });
    case Comparison::logical_and:
      return visit([](auto a, auto b) -> bool { return (a != 0) & (b != 0); });  // without a jump
    case Comparison::logical_or:
      return visit([](auto a, auto b) -> bool { return (a != 0) | (b != 0); });
    case Comparison::logical_xor:
      break;
  }
  return visit([](auto a, auto b) { return (a != 0) != (b != 0); });
}

namespace reference {
decltype(kernels::compare) compare;
}  // namespace reference

namespace cpu {
/// Every dtype on the CPU.
decltype(kernels::compare) compare;
}  // namespace cpu

namespace cuda {
/// f32, f16, bf16 and integers on a CUDA device.
decltype(kernels::compare) compare;
}  // namespace cuda

}  // namespace tandem::kernels
