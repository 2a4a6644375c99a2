// Options that hold for some parameters of an optimizer, in place of its own.
#pragma once

#include "tandem/core/tensor.h"
#include "tandem/optim/schedule.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace tandem::optim {

/// For Optimizer::add_group(). What is empty is as the optimizer has it. torch.optim's parameter groups, but that the
/// learning rate is a factor, so that one schedule moves all groups, and that parameters keep their places in
/// Optimizer::parameters() and in checkpoints. Example:
///     #include "tandem/optim/sgd.h"
///     const Tensor weight = autograd::set_requires_grad(Tensor::full({10, 256}, 0.1));
///     const Tensor bias = autograd::set_requires_grad(Tensor::full({10}, 0.0));
///     SGD optimizer({weight, bias}, {.lr = 0.1, .weight_decay = 5e-4});
///     optimizer.add_group({.parameters = {bias}, .lr_factor = 2.0, .weight_decay = 0.0});
///     const double rate = optimizer.lr(0);  // 0.2
struct ParameterGroup {
  std::vector<Tensor> parameters = {};  ///< of the optimizer's, each in one group at most
  double lr_factor = 1.0;               ///< times the optimizer's learning rate
  /// Of optimizers that have it.
  std::optional<double> weight_decay = {};
  /// Of optimizers that have it. 0: none, and then no Nesterov's either.
  std::optional<double> momentum = {};
  /// In steps, in place of the factor of Optimizer::set_lr_factor(): the learning rate of a step, counted from 0, is
  /// Optimizer::base_lr() * lr_factor * schedule->lr_factor(step).
  std::shared_ptr<const Schedule> schedule = {};
  /// The step, counted from 0, from which on the parameters stay as they are: so many steps change them. They are
  /// neither decayed nor moved by momentum then, and get no gradient (autograd::set_requires_grad()), which saves that
  /// part of backward(). Nothing: never.
  std::optional<std::int64_t> freeze_step = {};
};

}  // namespace tandem::optim
