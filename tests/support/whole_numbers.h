// Integers in no plain order.
#pragma once

#include "tandem/core/tensor.h"

#include <cstdint>
#include <vector>

namespace tandem::test {

/// A tensor of an integer dtype, with numbers all over what it holds: sums of some of i64 wrap around.
inline Tensor whole_numbers(const Shape& shape, DType dtype) {
  const auto values = [&]<typename T>(T) {
    std::vector<T> result(static_cast<std::size_t>(element_count(shape)));
    std::uint64_t bits = 1;
    for (T& value : result) {
      bits = bits * 6364136223846793005u + 1442695040888963407u;  // Knuth's congruential generator (MMIX)
      value = static_cast<T>(bits >> (64 - 8 * sizeof(T)));
    }
    return Tensor::from(result, shape);
  };
  switch (dtype) {
    case DType::i64:
      return values(std::int64_t{});
    case DType::i32:
      return values(std::int32_t{});
    default:
      return values(std::uint8_t{});
  }
}

}  // namespace tandem::test
