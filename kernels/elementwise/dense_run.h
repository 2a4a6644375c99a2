// Runs of strided elements as dense ones, for loops that the compiler vectorises.
#pragma once

#include "tandem/kernels/cast/float_runs.h"

#include <algorithm>
#include <cstdint>
#include <type_traits>

namespace tandem::kernels::cpu {

/// Blocks of a run, side by side, as elements of C: T itself, or float for halves. They are where they are, or copies
/// in `buffer`, which has room for one block. Elements with a step of 0, as of numbers, are all one, and copied once.
template <typename T, typename C = T>
class DenseRun {
 public:
  DenseRun(const T* from, std::int64_t step, std::int64_t length, C* buffer)
      : from_(from), step_(step), buffer_(buffer) {
    if (step == 0) copy(0, std::min(length, kBlock));
  }

  const C* block(std::int64_t begin, std::int64_t count) const {
    if constexpr (std::is_same_v<T, C>)
      if (step_ == 1) return from_ + begin;
    if (step_ != 0) copy(begin, count);
    return buffer_;
  }

 private:
  void copy(std::int64_t begin, std::int64_t count) const {
    const T* const from = from_ + begin * step_;
    if constexpr (std::is_same_v<T, C>) {
      for (std::int64_t i = 0; i < count; ++i) buffer_[i] = from[i * step_];
    } else {
      widen(from, step_, count, buffer_);
    }
  }

  const T* from_;
  std::int64_t step_;
  C* buffer_;
};

}  // namespace tandem::kernels::cpu
