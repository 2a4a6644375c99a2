// Stochastic gradient descent with momentum.
#pragma once

#include "tandem/kernels/optimizer/step_factors.h"
#include "tandem/optim/optimizer.h"

#include <typeinfo>

namespace tandem::optim {

/// PyTorch's names and defaults. Nesterov needs momentum > 0 and no dampening.
struct SGDOptions {
  double lr = 1e-3;            ///< learning rate
  double momentum = 0.0;       ///< 0: none
  double dampening = 0.0;      ///< the share of the gradient that momentum leaves out
  double weight_decay = 0.0;   ///< times the weight, added to the gradient
  bool nesterov = false;       ///< Nesterov's momentum
  bool master_weights = true;  ///< f32 copies of half parameters, which steps are taken in
};

/// torch.optim.SGD; the formulas are in kernels/optimizer/sgd.h. Throws Error on options out of range.
/// Example:
///     #include "tandem/autograd/functions.h"
///     const Tensor w = autograd::set_requires_grad(Tensor::full({}, 1.0));
///     SGD optimizer({w}, {.lr = 0.1, .momentum = 0.9});
///     optimizer.zero_grad();
///     autograd::backward(autograd::scale(w, 2.0));  // the loss
///     optimizer.step();
///     const double value = w.item();  // 0.8
class SGD : public Optimizer {
 public:
  /// Throws Error on options out of range, without parameters, and for one that is no dense floating leaf or is given
  /// twice.
  SGD(std::vector<Tensor> parameters, const SGDOptions& options);

 protected:
  void update(std::span<const Update> updates) override;
  /// Not for a class that is derived from this one, whose update() may do more.
  bool looks_at_skip() const override { return typeid(*this) == typeid(SGD); }
  bool looks_at_loss_scale() const override { return typeid(*this) == typeid(SGD); }
  void check_group(const ParameterGroup& group) const override;
  bool keeps(std::size_t state, const ParameterGroup& group) const override;
  kernels::StepFactors factors(const ParameterGroup& group, double lr) const override;

 private:
  double momentum_of(const ParameterGroup& group) const;

  SGDOptions options_;
};

}  // namespace tandem::optim
