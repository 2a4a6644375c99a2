// Runs of strided elements as dense ones, for loops that the compiler vectorises.
#pragma once

#include <cstdint>

namespace tandem::kernels::cpu {

/// A run's elements side by side: those in place, else copies in `buffer`.
template <typename T>
const T* dense_run(const T* from, std::int64_t step, std::int64_t count, T* buffer) {
  if (step == 1) return from;
  for (std::int64_t i = 0; i < count; ++i) buffer[i] = from[i * step];
  return buffer;
}

}  // namespace tandem::kernels::cpu
