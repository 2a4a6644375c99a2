// Adam and AdamW.
#pragma once

#include "tandem/kernels/optimizer/step_factors.h"
#include "tandem/optim/optimizer.h"

#include <typeinfo>

namespace tandem::optim {

/// PyTorch's names and defaults.
struct AdamOptions {
  double lr = 1e-3;            ///< learning rate
  double beta1 = 0.9;          ///< decay of the mean of gradients
  double beta2 = 0.999;        ///< decay of the mean of their squares
  double eps = 1e-8;           ///< added to the root of that
  double weight_decay = 0.0;   ///< times the weight, added to the gradient
  bool amsgrad = false;        ///< divide by the largest of these means so far
  bool master_weights = true;  ///< f32 copies of half parameters, which steps are taken in
};

/// torch.optim.Adam; weight decay is added to the gradient. The formulas are in kernels/optimizer/adam.h. Throws Error
/// on options out of range.
/// Example:
///     #include "tandem/autograd/functions.h"
///     const Tensor w = autograd::set_requires_grad(Tensor::full({}, 1.0));
///     Adam optimizer({w}, {.lr = 0.1});
///     optimizer.zero_grad();
///     autograd::backward(autograd::scale(w, 2.0));  // the loss
///     optimizer.step();
///     const double value = w.item();  // 0.9
class Adam : public Optimizer {
 public:
  /// Throws Error on options out of range, without parameters, and for one that is no dense floating leaf or is given
  /// twice.
  explicit Adam(std::vector<Tensor> parameters, const AdamOptions& options = {})
      : Adam("Adam", std::move(parameters), options, false) {}

 protected:
  /// For optimizers that derive from it: `name` begins their messages.
  Adam(const std::string& name, std::vector<Tensor> parameters, const AdamOptions& options,
       bool decoupled_weight_decay);
  void update(std::span<const Update> updates) override;
  /// Not for a class that is derived from this one, whose update() may do more.
  bool looks_at_skip() const override { return typeid(*this) == typeid(Adam); }
  bool looks_at_loss_scale() const override { return typeid(*this) == typeid(Adam); }
  void check_group(const ParameterGroup& group) const override;
  kernels::StepFactors factors(const ParameterGroup& group, double lr) const override;
  bool counts_on_gpu() const override { return true; }

 private:
  AdamOptions options_;
  bool decoupled_weight_decay_;
};

/// PyTorch's names and defaults of AdamW: those of Adam, but for weight_decay.
struct AdamWOptions {
  double lr = 1e-3;            ///< learning rate
  double beta1 = 0.9;          ///< decay of the mean of gradients
  double beta2 = 0.999;        ///< decay of the mean of their squares
  double eps = 1e-8;           ///< added to the root of that
  double weight_decay = 1e-2;  ///< times the learning rate, which the weight shrinks by
  bool amsgrad = false;        ///< divide by the largest of these means so far
  bool master_weights = true;  ///< f32 copies of half parameters, which steps are taken in
};

/// torch.optim.AdamW; weight decay shrinks the parameter directly.
class AdamW : public Adam {
 public:
  /// Throws as Adam does.
  explicit AdamW(std::vector<Tensor> parameters, const AdamWOptions& options = {});

 protected:
  bool looks_at_skip() const override { return typeid(*this) == typeid(AdamW); }
  bool looks_at_loss_scale() const override { return typeid(*this) == typeid(AdamW); }
};

}  // namespace tandem::optim
