// The implementations of adam.h, which its dispatcher chooses from.
#pragma once

#include "tandem/kernels/optimizer/adam.h"

namespace tandem::kernels {

/// base^exponent of an exponent >= 0, by multiplications alone, so that all devices get the same bits.
constexpr double integer_power(double base, std::int64_t exponent) {
  double result = 1.0;
  for (double square = base; exponent > 0; exponent /= 2) {
    if (exponent % 2 != 0) result *= square;
    square *= square;
  }
  return result;
}

namespace cuda {
decltype(kernels::adam_step) adam_step;
}  // namespace cuda

}  // namespace tandem::kernels
