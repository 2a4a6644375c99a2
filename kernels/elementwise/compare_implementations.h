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
      break;
  }
  return visit([](auto a, auto b) { return a >= b; });
}

namespace reference {
decltype(kernels::compare) compare;
}  // namespace reference

namespace cpu {
/// f32, f16 and bf16 on the CPU.
bool compare_supports(const Tensor& a);
decltype(kernels::compare) compare;
}  // namespace cpu

namespace cuda {
/// f32, f16 and bf16 on a CUDA device.
decltype(kernels::compare) compare;
}  // namespace cuda

}  // namespace tandem::kernels
