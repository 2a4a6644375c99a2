// Lookahead: slow weights, which the weights in training return to every few steps.
#pragma once

#include "tandem/core/named_tensors.h"
#include "tandem/kernels/optimizer/table_cache.h"
#include "tandem/optim/optimizer.h"
#include "tandem/optim/step_control.h"

#include <cstdint>
#include <vector>

namespace tandem::optim {

/// How often slow weights move, and how far. The defaults are those of airbench94 (Jordan: "94% on CIFAR-10 in 3.29
/// seconds on a single GPU", 2024, arXiv:2404.00498). Example:
///     const LookaheadOptions rising;                                               // 0 at first, 0.95^5 in the end
///     const double half_way = rising.decay_at(50, 100);                            // 0.0967226: 0.95^5 / 8
///     const double constant = LookaheadOptions::constant(5, 0.5).decay_at(7, 100);  // 0.5, at every step
struct LookaheadOptions {
  std::int64_t every = 5;  ///< steps between two moves, 1 or more
  double decay = 0.95;     ///< of one step, between 0 and 1: a move has that of its steps together, decay^every
  double power = 3.0;      ///< the decay rises with this power of the share of the run that is done; 0: it is constant

  /// Plain Lookahead, slow += alpha * (weights - slow) every `every` steps, 0 < alpha < 1 (Zhang, Lucas, Hinton, Ba:
  /// "Lookahead Optimizer: k steps forward, 1 step back", NeurIPS 2019, which takes 5 and 0.5).
  static LookaheadOptions constant(std::int64_t every, double alpha);

  /// What a move behind the `step`-th of `steps` steps, counted from 1, keeps of the slow weights:
  ///   decay^every * (step / steps)^power
  /// Steps behind the last one count as that.
  double decay_at(std::int64_t step, std::int64_t steps) const;
};

/// Keeps slow weights beside those that an optimizer trains. Behind every options.every-th step
///   slow = d * slow + (1 - d) * weights,  d = options.decay_at(step, steps),
///   weights = slow,
/// so that training goes on from an average of where it was. What the optimizer keeps, such as momentum, stays as it
/// is. Slow weights are of all floating tensors, batch norm's running statistics as well. Left alone are integers, such
/// as counts, and what is no parameter and not finite to begin with, such as a mask. They are f32 (f64 of f64), tagged
/// MemoryTag::optimizer, on the tensors' device. Of a half parameter it is the master that counts, and the parameter is
/// rounded from it. On a GPU one kernel moves all of them. Example:
///     #include "tandem/optim/sgd.h"
///     const Tensor w = autograd::set_requires_grad(Tensor::full({2}, 1.0));
///     SGD sgd({w}, {.lr = 0.5});
///     Lookahead lookahead({{"w", w}}, sgd, LookaheadOptions::constant(2, 0.5));
///     for (std::int64_t step = 1; step <= 3; ++step) {
///       autograd::set_grad(w, Tensor::full({2}, 2.0));
///       sgd.step();                    // to 0, to -1, and behind the move to -1 again
///       lookahead.after_step(step, 3);  // moves behind step 2: half way from 1 to -1 is 0
///     }
///     lookahead.finish();
///     const std::vector<float> values = w.to_vector<float>();  // {0, 0}: the third step is lost
class Lookahead {
 public:
  /// Of `tensors`, such as a model's state_dict(), which must stay where they are, and start as slow weights.
  /// `optimizer` has the masters of those that are its parameters; it must not change them to others. A tensor that has
  /// two names is kept by the first one. Throws Error for options out of range and for a floating tensor that is not
  /// dense.
  Lookahead(const NamedTensors& tensors, const Optimizer& optimizer, const LookaheadOptions& options);

  /// Behind each step that was taken, the `step`-th of `steps` of the whole run, counted from 1. A step that a loss
  /// scale skipped is none of the `every` between two moves, so that as many updates lie between them; it is one of
  /// `steps`, as for a schedule. Throws Error unless 1 <= step and 1 <= steps.
  void after_step(std::int64_t step, std::int64_t steps);
  /// The same behind a step that may have been skipped, as GradScaler::step() returned it: such a step changes nothing.
  /// A GPU that has not answered yet looks for itself whether to move, and nobody waits for it.
  void after_step(std::int64_t step, std::int64_t steps, const FiniteCheck& taken);

  /// At the end of training: the weights become the slow ones as they are, without another average. What steps since
  /// the last move did is lost. Does nothing before the first move, as all that was trained would be lost.
  void finish();

  /// As given.
  const LookaheadOptions& options() const { return options_; }
  /// Steps that after_step() was called for.
  std::int64_t steps_taken() const;
  /// Live, by the tensors' names and in their order, without those of integers.
  const NamedTensors& slow_weights() const { return slow_; }

  /// Goes on from slow_weights() and steps_taken() of before. The weights themselves are left alone. Throws Error,
  /// changing nothing, where names, shapes or dtypes are others or steps_taken < 0.
  void load(const NamedTensors& slow_weights, std::int64_t steps_taken);

 private:
  void move(double decay, const Tensor& skip);
  /// Takes back the count of the last step if it was skipped.
  void settle_steps() const;

  /// Where a slow weight goes to. A half parameter that has a master is `rounded`, and that master the `value`.
  struct Target {
    Tensor value, rounded;
  };

  LookaheadOptions options_;
  std::vector<Target> targets_;  // in the order of slow_
  NamedTensors slow_;
  StepControl control_{1};
  kernels::TableCache table_;
  mutable std::int64_t steps_taken_ = 0;  // mutable, as whoever reads it first settles it
  mutable FiniteCheck unsettled_;         // of the last step, where a GPU has not answered yet
};

}  // namespace tandem::optim
