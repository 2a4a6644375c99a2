// Sum of a run of floats in f64 over independent lanes, which vectorises and has a fixed order.
#pragma once

#include <cstdint>

namespace tandem::kernels::cpu {

inline double lane_sum(const float* values, std::int64_t count, std::int64_t step) {
  constexpr std::int64_t kLanes = 32;
  double lanes[kLanes] = {};
  std::int64_t i = 0;
  if (step == 1) {
    for (; i + kLanes <= count; i += kLanes) {
      for (std::int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] += static_cast<double>(values[i + lane]);
    }
  }
  double sum = 0.0;
  for (; i < count; ++i) sum += static_cast<double>(values[i * step]);
  for (const double lane : lanes) sum += lane;
  return sum;
}

}  // namespace tandem::kernels::cpu
