// Exponential moving average of weights.
#pragma once

#include "tandem/core/named_tensors.h"
#include "tandem/kernels/optimizer/table_cache.h"
#include "tandem/optim/finite_check.h"
#include "tandem/optim/step_control.h"

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace tandem::optim {

/// How often averages move, and how they begin. Example:
///     const AverageOptions plain{.every = 5, .warms_up = false};  // of David Page's bag of tricks, at a decay of 0.99
struct AverageOptions {
  std::int64_t every = 1;  ///< steps between two moves, 1 or more; a move has the decay of these together, decay^every
  bool warms_up = true;  ///< the first moves keep less of the average, so that the tensors at first are soon forgotten
};

/// Keeps an average of tensors over the steps of training: at the t-th update, t from 0,
///   average = d * average + (1 - d) * tensor,  d = min(decay, (1 + t) / (10 + t)),
/// so that the first steps, from random weights, are soon forgotten (TensorFlow's tf.train.ExponentialMovingAverage
/// with num_updates; the average of iterates is Polyak's and Juditsky's, 1992). With AverageOptions::every above 1 that
/// is of every so many updates, t counts those that moved, and the decay is that of so many; without warms_up it is the
/// decay from the start. It starts as the tensors are at
/// construction. Averages are f32 (f64 of f64), tagged MemoryTag::optimizer, in the tensors' strides and on their
/// device. What holds integers, as counts do, is copied, and so is what is not finite to begin with, such as a mask. On
/// a GPU all others are updated by one kernel. Example:
///     #include "tandem/autograd/variable.h"
///     #include "tandem/core/out.h"
///     const Tensor w = Tensor::full({2}, 1.0);
///     ExponentialMovingAverage ema({{"w", w}}, 0.999);
///     w.fill(2.0);  // a step of training
///     ema.update();
///     const std::vector<float> average = ema.averages()[0].second.to_vector<float>();  // {1.9, 1.9}: d is 1 / 10
class ExponentialMovingAverage {
 public:
  /// Keeps the tensors, which must stay where they are. Throws Error unless 0 < decay < 1 and options.every >= 1, and
  /// for a tensor that is not dense.
  ExponentialMovingAverage(NamedTensors tensors, double decay, const AverageOptions& options = {});

  /// Behind each step that was taken.
  void update();
  /// The same behind a step that was taken if the check has passed. Where a GPU answers that, its kernel goes by the
  /// answer, and the host waits for that of the step before.
  void update(const FiniteCheck& taken);

  /// How often update() was called for a step that was taken, for which it may wait, and the decay that it was made
  /// with.
  /// @{
  std::int64_t updates() const;
  double decay() const { return decay_; }
  /// @}

  /// Live, by the tensors' names and in their order. What is copied on the CPU may wait for a GPU's answer: then this
  /// waits for it.
  const NamedTensors& averages() const;

  /// Goes on from averages() and updates() of before. Throws Error, changing nothing, where names, shapes or dtypes are
  /// others or updates < 0.
  void load(const NamedTensors& averages, std::int64_t updates);

 private:
  void settle() const;
  bool needs_answer(std::size_t index, Device asked) const;
  double next_decay() const;

  NamedTensors tensors_, averages_;
  std::vector<bool> is_averaged_;  // of each; others are copied
  double decay_;
  AverageOptions options_;
  // Mutable, as whoever asks first settles the last update: what it has counted and copied where a GPU had not
  // answered.
  mutable std::int64_t updates_ = 0;
  mutable FiniteCheck unsettled_;
  mutable std::vector<std::pair<Tensor, Tensor>> copies_;  // averages, and what they are to be
  StepControl control_{1};
  kernels::TableCache table_;
};

}  // namespace tandem::optim
