// What all optimizers share: the parameters, the learning rate, the state kept per parameter, and saving it.
#pragma once

#include "tandem/autograd/variable.h"
#include "tandem/core/named_tensors.h"

#include <span>
#include <string>
#include <utility>
#include <vector>

namespace tandem::optim {

/// Updates parameters in place from their gradients. Parameters are dense floating leaves, each named once. They may be
/// moved to another device (Module::to) before the first step, but for those with a master; a later move, or another
/// dtype, is an Error of the next step. A half parameter has an f32 master, unless the options say no: steps are taken
/// there, and the parameter is its rounded copy. Example:
///     #include "tandem/core/out.h"
///     class PlainDescent final : public Optimizer {  // for f32
///      public:
///       PlainDescent(std::vector<Tensor> parameters, double lr)
///           : Optimizer("PlainDescent", std::move(parameters), lr, false, {}) {}
///
///      protected:
///       void update(std::span<const Update> updates) override {
///         const float rate = static_cast<float>(lr() * gradient_factor());
///         for (const Update& due : updates) {
///           float* const w = Out(due.parameter).data<float>();
///           for (std::int64_t i = 0; i < due.parameter.numel(); ++i) w[i] -= rate * due.gradient.data<float>()[i];
///         }
///       }
///     };
///     const Tensor w = autograd::set_requires_grad(Tensor::full({2}, 1.0));
///     PlainDescent optimizer({w}, 0.1);
///     autograd::set_grad(w, Tensor::full({2}, 5.0));
///     optimizer.step();
///     const std::vector<float> values = w.to_vector<float>();  // {0.5, 0.5}
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  /// One update, a single pass over all parameters that have a gradient; the others are left alone, as in PyTorch.
  void step();

  /// In place of step(), where gradients are not to be used: nothing changes, and factors end as they do there.
  void skip_step() { end_factor(); }

  /// Drops all gradients, and with them the factor that they had.
  void zero_grad();

  /// The gradients that are there count this many times at the step, which multiplies by it in passing; factors of
  /// several calls are multiplied. How a loss scale is taken out of gradients again, and how they are clipped. A factor
  /// belongs to one step and to the gradients it was given to: it ends with step() or skip_step(), and gradients that
  /// come after some of these were dropped, by whichever zero_grad, do not have it. Given where there are no gradients
  /// yet, it is that of the next step's. A gradient that has a factor must not be added to or replaced before the step:
  /// step() and scale_gradients() throw Error then, changing nothing.
  void scale_gradients(double factor);
  /// The factor that gradients have until the next step; 1 where none was given.
  double gradient_factor() const { return factor_holds() ? gradient_factor_ : 1.0; }

  /// Of the next step.
  double lr() const { return lr_; }
  /// Takes effect at the next step. Throws Error unless finite and >= 0.
  void set_lr(double lr);

  /// In the order in which they were given.
  const std::vector<Tensor>& parameters() const { return parameters_; }

  /// f32, in the strides of the `index`-th parameter; undefined for a parameter without.
  Tensor master(std::size_t index) const { return masters_.at(index); }

  /// Copies a value (of the parameter's shape, floating, on any device) into the `index`-th parameter and its master,
  /// which keeps the digits that the parameter has no room for. Throws Error for another value.
  void set_value(std::size_t index, const Tensor& value);

  /// Steps of the parameter that has made the most.
  std::int64_t steps() const;

  /// For checkpoints: "<parameter index>.step" (i64, rank 0) and "<parameter index>.<state name>" (PyTorch's names:
  /// momentum_buffer, exp_avg, ...) for each parameter that was ever updated, and "<parameter index>.master" for each
  /// that has one. The tensors are the live ones, not copies, but for the counts of steps.
  NamedTensors state_dict() const;

  /// Copies a state in, and masters to their parameters. Throws Error on names, shapes or dtypes that do not belong to
  /// these parameters, changing nothing.
  void load_state_dict(const NamedTensors& state);

 protected:
  /// A parameter that is due for an update. `step` counts from 1; `state` follows the order of state_names.
  struct Update {
    /// The parameter as it is used, its gradient, and its f32 copy, which is undefined where it needs none.
    Tensor parameter, gradient, master;
    std::int64_t step;                 ///< of this parameter
    const std::vector<Tensor>& state;  ///< in the order of state_names
  };

  /// `state_names`: what is kept per parameter, each a tensor like the parameter that starts as zeros.
  Optimizer(std::string name, std::vector<Tensor> parameters, double lr, bool master_weights,
            std::vector<std::string> state_names);

  /// Gradients count gradient_factor() times.
  virtual void update(std::span<const Update> updates) = 0;

 private:
  struct ParameterState {
    std::int64_t step = 0;
    std::vector<Tensor> tensors;  // empty before the first step
  };

  /// A gradient that the factor was given to: whose it is, and what that one's counts were.
  struct FactorOf {
    std::size_t parameter;
    autograd::GradientCounts counts;
  };

  /// Of a parameter when the optimizer last looked.
  struct Home {
    DType dtype;
    Device device;
    friend bool operator==(const Home&, const Home&) = default;
  };

  /// Throws Error where a parameter has changed its dtype, or its device although something is kept for it.
  void check_home(std::size_t index);
  ParameterState fresh_state(const Tensor& parameter) const;
  void make_masters();
  bool factor_holds() const;
  /// Where some of the gradients that have the factor are gone, or others have come, multiplies those that have it, and
  /// ends it.
  void settle_factor();
  void end_factor();

  std::string name_;
  std::vector<Tensor> parameters_;
  std::vector<Home> homes_;
  std::vector<Tensor> masters_;  // undefined where there is none
  double lr_ = 0.0;
  double gradient_factor_ = 1.0;
  std::vector<FactorOf> factor_of_;  // none: of gradients that are yet to come
  std::vector<std::string> state_names_;
  std::vector<ParameterState> states_;
};

/// The gradients of those parameters that have one.
std::vector<Tensor> gradients_of(const std::vector<Tensor>& parameters);

}  // namespace tandem::optim
