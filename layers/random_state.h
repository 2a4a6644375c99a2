// Where layers that draw random numbers while training (dropout) learn which step it is.
#pragma once

#include "core/random.h"

#include <cstdint>

namespace tandem::layers {

/// One per model, shared by its random layers (Module::set_random_state). The trainer sets the step before each forward
/// pass: as a mask is a function of (seed, rank, layer, step) alone, a resumed run draws what the uninterrupted one
/// would have drawn, and ranks draw different masks for their different samples.
class RandomState {
 public:
  explicit RandomState(std::uint64_t seed, std::uint32_t rank = 0) : seed_(seed), rank_(rank) {}

  /// Counts forward passes in training, over all epochs: with gradient accumulation each micro-batch has its own.
  std::uint32_t step() const { return step_; }
  void set_step(std::uint32_t step) { step_ = step; }
  void advance() { ++step_; }

  std::uint64_t seed() const { return seed_; }
  std::uint32_t rank() const { return rank_; }

  /// The key of a model's `layer`-th random layer in this step.
  RandomKey key(std::uint32_t layer) const;

 private:
  std::uint64_t seed_;
  std::uint32_t rank_;
  std::uint32_t step_ = 0;
};

}  // namespace tandem::layers
