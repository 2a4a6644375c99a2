// ExampleRandom: the random numbers that a transform may draw for one example.
#pragma once

#include "tandem/core/random.h"

#include <cstdint>

namespace tandem::data {

/// A sequence of its own for each (seed, epoch, number of the example): the same whatever threads, ranks and batches.
/// Example:
///     ExampleRandom random(1, 0, 5);
///     const float first = random.uniform();
///     const float factor = random.uniform(0.8f, 1.2f), noise = random.normal();
///     const std::uint32_t column = random.below(9);                 // one of 0 to 8
///     const bool same = ExampleRandom(1, 0, 5).uniform() == first;  // true
class ExampleRandom {
 public:
  /// The numbers of example `index` in this epoch.
  ExampleRandom(std::uint64_t seed, std::uint32_t epoch, std::int64_t index)
      : key_{seed, RandomStream::augmentation, epoch},
        next_(kBehindImages + static_cast<std::uint64_t>(index) * kNumbersOfOne) {}

  float uniform() { return key_.uniform(next_++); }  ///< in [0, 1)
  /// In [low, high).
  float uniform(float low, float high) { return low + (high - low) * uniform(); }
  float normal() { return key_.normal(next_++); }  ///< mean 0, variance 1
  /// In [0, bound).
  std::uint32_t below(std::uint32_t bound) { return key_.below(next_++, bound); }

 private:
  // draw_augment() takes numbers of the same key from 0 on.
  static constexpr std::uint64_t kBehindImages = std::uint64_t{1} << 61, kNumbersOfOne = std::uint64_t{1} << 24;

  RandomKey key_;
  std::uint64_t next_;
};

}  // namespace tandem::data
