// What all optimizers share: the parameters, the learning rate, the state kept per parameter, and saving it.
#pragma once

#include "core/tensor.h"

#include <span>
#include <string>
#include <utility>
#include <vector>

namespace tandem::optim {

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

/// Updates parameters in place from their gradients. Parameters are dense floating leaves, each named once.
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  /// One update, a single pass over all parameters that have a gradient; the others are left alone, as in PyTorch.
  void step();

  /// Forgets all gradients.
  void zero_grad();

  double lr() const { return lr_; }
  /// Takes effect at the next step. Throws unless finite and >= 0.
  void set_lr(double lr);

  const std::vector<Tensor>& parameters() const { return parameters_; }

  /// Steps of the parameter that has made the most.
  std::int64_t steps() const;

  /// For checkpoints: "<parameter index>.step" (i64, rank 0) and "<parameter index>.<state name>" (PyTorch's names:
  /// momentum_buffer, exp_avg, ...) for each parameter that was ever updated. The tensors are the live ones, not
  /// copies.
  NamedTensors state_dict() const;

  /// Copies a state in. Throws Error on names or shapes that do not belong to these parameters, changing nothing.
  void load_state_dict(const NamedTensors& state);

 protected:
  /// A parameter that is due for an update. `step` counts from 1; `state` follows the order of state_names.
  struct Update {
    Tensor parameter, gradient;
    std::int64_t step;
    const std::vector<Tensor>& state;
  };

  /// `state_names`: what is kept per parameter, each a tensor like the parameter that starts as zeros.
  Optimizer(std::string name, std::vector<Tensor> parameters, double lr, std::vector<std::string> state_names);

  virtual void update(std::span<const Update> updates) = 0;

 private:
  struct ParameterState {
    std::int64_t step = 0;
    std::vector<Tensor> tensors;  // empty before the first step
  };

  ParameterState fresh_state(const Tensor& parameter) const;

  std::string name_;
  std::vector<Tensor> parameters_;
  double lr_ = 0.0;
  std::vector<std::string> state_names_;
  std::vector<ParameterState> states_;
};

}  // namespace tandem::optim
