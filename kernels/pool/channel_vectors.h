// Vectors over the channels of channels_last pixels, as floats whatever the image holds.
#pragma once

#include "tandem/kernels/cast/float_runs.h"
#include "tandem/kernels/gemm/simd.h"

#include <algorithm>
#include <cstdint>

namespace tandem::kernels::cpu {

/// kLanes channels from `first` on, or as many as there are.
struct Channels {
  std::int64_t first, count;

  bool all() const { return count == simd::kLanes; }
  template <typename T>
  simd::Vec load(const T* pixel) const {
    return all() ? simd::load(pixel + first) : simd::load_partial(pixel + first, count);
  }
  template <typename T>
  void store(T* pixel, simd::Vec value) const {
    if (all()) return simd::store(pixel + first, value);
    simd::store_partial(pixel + first, value, count);
  }
};

template <typename Visitor>
void for_each_vector(std::int64_t channels, Visitor&& visit) {
  for (std::int64_t c = 0; c < channels; c += simd::kLanes)
    visit(Channels{c, std::min<std::int64_t>(simd::kLanes, channels - c)});
}

/// Rows of this many elements that are worth a thread.
inline std::int64_t rows_per_part(std::int64_t row_elements) {
  constexpr std::int64_t kGrainElements = 1 << 14;
  return std::max<std::int64_t>(1, kGrainElements / std::max<std::int64_t>(row_elements, 1));
}

}  // namespace tandem::kernels::cpu
