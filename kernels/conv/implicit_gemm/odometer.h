// Counting in three digits: channel, column and row of a tap, or column, row and image of a pixel, without a division
// in the main loop.
#pragma once

#include "tandem/kernels/device/divisor.h"

#include <cstdint>

namespace tandem::kernels::cuda::implicit_gemm {

/// A number as outer * (middle_size * inner_size) + middle * inner_size + inner.
struct Digits {
  int inner, middle, outer;
};

/// Splits numbers below 2^31 into digits, and adds one fixed step to them.
class Odometer {
 public:
  Odometer(std::int64_t inner_size, std::int64_t middle_size, std::int64_t step)
      : by_inner_(inner_size),
        by_middle_(middle_size),
        inner_size_(static_cast<int>(inner_size)),
        middle_size_(static_cast<int>(middle_size)),
        step_{static_cast<int>(step % inner_size), static_cast<int>(step / inner_size % middle_size),
              static_cast<int>(step / inner_size / middle_size)} {}

  __device__ Digits digits(int number) const {
    unsigned rest = static_cast<unsigned>(number);
    unsigned left = by_inner_.split(rest);
    const unsigned outer = by_middle_.split(left);
    return {static_cast<int>(rest), static_cast<int>(left), static_cast<int>(outer)};
  }

  __device__ void advance(Digits& digits) const {
    digits.inner += step_.inner;
    digits.middle += step_.middle;
    digits.outer += step_.outer;
    if (digits.inner >= inner_size_) {
      digits.inner -= inner_size_;
      ++digits.middle;
    }
    if (digits.middle >= middle_size_) {
      digits.middle -= middle_size_;
      ++digits.outer;
    }
  }

 private:
  device::Divisor by_inner_, by_middle_;
  int inner_size_, middle_size_;
  Digits step_;
};

}  // namespace tandem::kernels::cuda::implicit_gemm
