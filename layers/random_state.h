// Where layers that draw random numbers while training (dropout) learn which step it is.
#pragma once

#include "tandem/core/device_copies.h"
#include "tandem/core/random.h"
#include "tandem/core/tensor.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tandem::layers {

/// A key as a kernel gets it: a part of its step may be a number that the kernel reads.
struct RandomDraw {
  RandomKey key;  ///< whose step is that of the draw, or what is to be added to `step`
  Tensor step{};  ///< i64, one number on the kernel's device, as RandomState::step_on() has it; undefined: 0
};

/// One per model, shared by its random layers (Module::set_random_state; those that were given none have their own). A
/// mask is a function of (seed, rank, layer, step, use) alone, where the uses of a layer are counted within a step:
/// every training forward draws other masks, and so does every use of a layer in one forward; ranks draw different
/// masks for their different samples. The trainer sets the step before each forward pass, so that a resumed run draws
/// what the uninterrupted one would have drawn. A loop that never sets it stays in step 0, where uses go on:
/// reproducible from its start. A WorkGraph (core/work_graph.h) repeats the uses that were recorded, and its kernels
/// read which step it is: set_step() and upload() before each launch. It reads where this was when it was recorded:
/// another state of the model (Module::set_random_state), another one assigned to this, and step_on() on another stream
/// end its use. Steps that begin within the recorded work, as those of micro-batches do, count on from there. Not for
/// use by several threads. Example:
///     #include "tandem/layers/dropout.h"
///     const auto state = std::make_shared<RandomState>(1);
///     Dropout network(0.5);  // or any module
///     network.set_random_state(state);
///     for (int step = 0; step < 3; ++step) {
///       const Tensor y = network(Tensor::full({2, 8}, 1.0));
///       state->advance();
///     }
class RandomState {
 public:
  /// Ranks with one seed draw different numbers.
  explicit RandomState(std::uint64_t seed, std::uint32_t rank = 0) : seed_(seed), rank_(rank) {}

  /// Counts forward passes in training, over all epochs: with gradient accumulation each micro-batch has its own.
  std::uint32_t step() const { return step_; }
  /// Begins a step: uses are counted from 0 again.
  void set_step(std::uint32_t step);
  /// set_step() of the next one.
  void advance() { set_step(step_ + 1); }

  /// Draws what that rank draws, from the beginning of this step: for a rank that computes several ranks' samples one
  /// after another.
  void set_rank(std::uint32_t rank);

  /// The seed that it was made with, and the rank whose numbers it draws.
  /// @{
  std::uint64_t seed() const { return seed_; }
  std::uint32_t rank() const { return rank_; }
  /// @}

  /// The key of the next use of a model's `layer`-th random layer in this step. Counts the use.
  RandomKey next_key(std::uint32_t layer);
  /// The same for a kernel on that device. While this thread records work for a GPU, the step is read there. Throws
  /// Error where step_on() does.
  RandomDraw next_draw(std::uint32_t layer, Device device);

  /// The step of set_step(), or of the last one that was not recorded, in that device's memory for kernels on its
  /// current stream: i64[1], the same memory for as long as the current stream is the same. Copied there if it has
  /// changed. Throws Error where a copy to a GPU is due while this thread records work: call upload() before that.
  Tensor step_on(Device device);

  /// What step_on() copies, for all devices that have drawn numbers or were asked for: before a WorkGraph is made, and
  /// before each launch. Throws Error for one whose current stream is another than then.
  void upload();

 private:
  std::span<const std::byte> bytes() const { return std::as_bytes(std::span(&launched_step_, 1)); }

  std::uint64_t seed_;
  std::uint32_t rank_;
  std::uint32_t step_ = 0;
  std::int64_t launched_step_ = 0;  // step_ as it was before anything was recorded
  DeviceCopies copies_{"random state", DType::i64};
  std::vector<std::uint32_t> uses_;  // in this step, by layer
};

}  // namespace tandem::layers
