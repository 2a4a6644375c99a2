// What softmax and cross-entropy begin with: the exponentials of a row of floats, and their sum. All loops vectorise.
#pragma once

#include "tandem/kernels/activation/vector_math.h"
#include "tandem/kernels/reduce/lane_sum.h"

#include <algorithm>
#include <cstdint>
#include <limits>

namespace tandem::kernels::cpu {

namespace detail {

/// The largest number that is not NaN, over independent lanes, which vectorise; minus infinity if there is none.
inline float largest_of(const float* row, std::int64_t count) {
  constexpr std::int64_t kLanes = 32;
  constexpr float kLowest = -std::numeric_limits<float>::infinity();
  float lanes[kLanes];
  std::fill_n(lanes, kLanes, kLowest);
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane)
      lanes[lane] = row[i + lane] > lanes[lane] ? row[i + lane] : lanes[lane];
  }
  float largest = kLowest;
  for (; i < count; ++i) largest = row[i] > largest ? row[i] : largest;
  for (const float lane : lanes) largest = lane > largest ? lane : largest;
  return largest;
}

inline void exp_differences(const float* __restrict row, float largest, std::int64_t count, float* __restrict to) {
  for (std::int64_t c = 0; c < count; ++c) to[c] = vector_exp_of_negative(row[c] - largest);
}

}  // namespace detail

struct ExpRow {
  float largest = 0.0f;  ///< of the row
  double sum = 0.0;      ///< of the exponentials
};

/// to[c] = exp(row[c] - largest) for c < count.
inline ExpRow exp_row(const float* __restrict row, std::int64_t count, float* __restrict to) {
  const float largest = detail::largest_of(row, count);
  detail::exp_differences(row, largest, count, to);
  return {largest, lane_sum(to, count, 1)};
}

}  // namespace tandem::kernels::cpu
