// What ranks bring to collectives: whole numbers of which every dtype has the sum, and that show where they come from.
#pragma once

#include "tandem/core/dtype.h"

#include <cstdint>

namespace tandem::test {

/// A prime: numbers below it are exact in the dtype, and sums of 32 of them in f32, or in an integer of that size.
inline std::int64_t period_of(DType dtype) {
  switch (dtype) {
    case DType::u8:
    case DType::bf16:
      return 251;
    case DType::f16:
      return 2039;
    default:
      return 65521;
  }
}

/// Different on each rank at one place, and on one rank at all places less than a period apart. By cubes of ranks, so
/// that a sum with one rank's numbers twice and another's left out is not the right one, nor an average that of one
/// rank.
inline double value_at(std::int64_t rank, std::int64_t index, DType dtype) {
  return static_cast<double>((rank * rank * rank * 7919 + index * 13) % period_of(dtype));
}

/// Of products: powers of two, few of which are not 1.
inline double factor_at(int rank, std::int64_t index) { return (rank + index) % 11 == 0 ? 2.0 : 1.0; }

}  // namespace tandem::test
