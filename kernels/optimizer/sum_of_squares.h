// The sum of squares of a run of elements on the CPU.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>

namespace tandem::kernels::detail {

/// Sums in double, as several sums side by side for the vector units.
template <typename T>
double sum_of_squares(const T* values, std::int64_t count) {
  constexpr std::int64_t kSums = 16;
  std::array<double, kSums> sums{};
  for (std::int64_t start = 0; start < count; start += kSums) {
    const std::int64_t length = std::min(kSums, count - start);
    for (std::int64_t i = 0; i < length; ++i) {
      const auto value = static_cast<double>(values[start + i]);
      sums[static_cast<std::size_t>(i)] += value * value;
    }
  }
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

}  // namespace tandem::kernels::detail
