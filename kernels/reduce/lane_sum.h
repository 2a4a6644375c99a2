// Sum of a run of floats or halves in f64 over independent lanes, which vectorises and has a fixed order.
#pragma once

#include "tandem/kernels/cast/float_runs.h"

#include <cstdint>

namespace tandem::kernels::cpu {

template <typename T>
inline double lane_sum(const T* values, std::int64_t count, std::int64_t step) {
  constexpr std::int64_t kLanes = 32;
  double lanes[kLanes] = {};
  const auto add_to_lanes = [&](const float* from) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] += static_cast<double>(from[lane]);
  };
  std::int64_t i = 0;
  if (step == 1) {
    for (; i + kLanes <= count; i += kLanes) {
      if constexpr (is_float<T>) {
        add_to_lanes(values + i);
      } else {
        float wide[kLanes];
        widen(values + i, kLanes, wide);
        add_to_lanes(wide);
      }
    }
  }
  double sum = 0.0;
  for (; i < count; ++i) sum += static_cast<double>(static_cast<float>(values[i * step]));
  for (const double lane : lanes) sum += lane;
  return sum;
}

}  // namespace tandem::kernels::cpu
