// Division by a number that is known before the launch: a multiplication and a shift instead of some twenty
// instructions.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace tandem::device {

/// Divides numbers below 2^31. Granlund and Montgomery, "Division by invariant integers using multiplication" (1994).
class Divisor {
 public:
  Divisor() = default;
  explicit Divisor(std::int64_t divisor) : divisor_(static_cast<unsigned>(divisor)) {
    while ((std::uint64_t{1} << shift_) < divisor_) ++shift_;
    multiplier_ = static_cast<unsigned>((((std::uint64_t{1} << shift_) - divisor_) << 32) / divisor_ + 1);
  }

  __device__ unsigned divide(unsigned number) const { return (__umulhi(number, multiplier_) + number) >> shift_; }

  /// The quotient; `number` becomes the remainder.
  __device__ unsigned split(unsigned& number) const {
    const unsigned quotient = divide(number);
    number -= quotient * divisor_;
    return quotient;
  }

 private:
  unsigned divisor_ = 1;
  unsigned multiplier_ = 1;
  unsigned shift_ = 0;
};

}  // namespace tandem::device
