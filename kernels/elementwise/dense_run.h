// Runs of strided elements as dense ones, for loops that the compiler vectorises.
#pragma once

#include "tandem/kernels/cast/float_runs.h"

#include <algorithm>
#include <cstdint>

namespace tandem::kernels::cpu {

/// Blocks of a run, side by side: those in place, else copies in `buffer`, which has room for one. Elements with a step
/// of 0, as of numbers, are all one, and copied once.
template <typename T>
class DenseRun {
 public:
  DenseRun(const T* from, std::int64_t step, std::int64_t length, T* buffer)
      : from_(from), step_(step), buffer_(buffer) {
    if (step == 0) std::fill_n(buffer, std::min(length, kBlock), *from);
  }

  const T* block(std::int64_t begin, std::int64_t count) const {
    if (step_ == 1) return from_ + begin;
    for (std::int64_t i = 0; step_ != 0 && i < count; ++i) buffer_[i] = from_[(begin + i) * step_];
    return buffer_;
  }

 private:
  const T* from_;
  std::int64_t step_;
  T* buffer_;
};

}  // namespace tandem::kernels::cpu
