// RMSprop.
#pragma once

#include "tandem/kernels/optimizer/step_factors.h"
#include "tandem/optim/optimizer.h"

#include <typeinfo>

namespace tandem::optim {

/// PyTorch's names and defaults.
struct RMSpropOptions {
  double lr = 1e-2;            ///< learning rate
  double alpha = 0.99;         ///< decay of the mean of squares
  double eps = 1e-8;           ///< added to the root of that
  double weight_decay = 0.0;   ///< times the weight, added to the gradient
  double momentum = 0.0;       ///< of the steps; 0: none
  bool centered = false;       ///< subtract the square of the mean gradient
  bool master_weights = true;  ///< f32 copies of half parameters, which steps are taken in
};

/// torch.optim.RMSprop; the formulas are in kernels/optimizer/rmsprop.h. Throws Error on options out of range.
/// Example:
///     #include "tandem/autograd/functions.h"
///     const Tensor w = autograd::set_requires_grad(Tensor::full({}, 1.0));
///     RMSprop optimizer({w}, {.lr = 0.1, .alpha = 0.75});
///     optimizer.zero_grad();
///     autograd::backward(autograd::scale(w, 2.0));  // the loss
///     optimizer.step();
///     const double value = w.item();  // 0.8
class RMSprop : public Optimizer {
 public:
  /// Throws Error on options out of range, without parameters, and for one that is no dense floating leaf or is given
  /// twice.
  explicit RMSprop(std::vector<Tensor> parameters, const RMSpropOptions& options = {});

 protected:
  void update(std::span<const Update> updates) override;
  /// Not for a class that is derived from this one, whose update() may do more.
  bool looks_at_skip() const override { return typeid(*this) == typeid(RMSprop); }
  bool looks_at_loss_scale() const override { return typeid(*this) == typeid(RMSprop); }
  void check_group(const ParameterGroup& group) const override;
  bool keeps(std::size_t state, const ParameterGroup& group) const override;
  kernels::StepFactors factors(const ParameterGroup& group, double lr) const override;

 private:
  double momentum_of(const ParameterGroup& group) const;

  RMSpropOptions options_;
};

}  // namespace tandem::optim
