// A model with averaged weights, for a while.
#pragma once

#include "tandem/layers/module.h"
#include "tandem/optim/ema.h"

#include <utility>
#include <vector>

namespace tandem::train {

/// While it lives, `model` has the averages, rounded to its dtypes, in place of its own parameters and buffers. Then it
/// has those again, with the same bits. Masters are not touched.
/// Example:
///     #include "tandem/layers/linear.h"
///     layers::Initializer initializer(1);
///     layers::Linear model({.in = 4, .out = 2}, initializer);
///     optim::ExponentialMovingAverage ema(model.state_dict(), 0.999);
///     // ... training, with ema.update() behind each step
///     const AveragedModel averaged(model, ema);
///     const Tensor output = model(Tensor::zeros({1, 4}));
class AveragedModel {
 public:
  /// `ema` must be of tensors by the names of the model's state dict; of others nothing is taken.
  AveragedModel(layers::Module& model, const optim::ExponentialMovingAverage& ema);
  ~AveragedModel();
  AveragedModel(const AveragedModel&) = delete;
  AveragedModel& operator=(const AveragedModel&) = delete;

 private:
  std::vector<std::pair<Tensor, Tensor>> own_;  // a tensor of the model, and what it held
};

}  // namespace tandem::train
