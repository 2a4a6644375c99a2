// The factor that gradients have from clipping and loss scaling: whose it is, and when it ends.
#include "tandem/autograd/variable.h"
#include "tandem/core/error.h"
#include "tandem/kernels/optimizer/loss_scale.h"
#include "tandem/kernels/optimizer/norm.h"
#include "tandem/optim/optimizer.h"

#include <algorithm>

namespace tandem::optim {

void Optimizer::zero_grad() {
  for (const Tensor& parameter : parameters_) autograd::clear_grad(parameter);
  end_factor();
}

void Optimizer::scale_gradients(double factor) {
  settle_factor();
  gradient_factor_ *= factor;
  factor_of_.clear();
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (autograd::grad(parameters_[i]).defined()) factor_of_.push_back({i, autograd::gradient_counts(parameters_[i])});
  }
}

void Optimizer::remove_loss_scale(const Tensor& loss_scale) {
  require(loss_scale.defined(), "{}: the loss scale is an undefined tensor", name_);
  kernels::check_loss_scale(name_, loss_scale, loss_scale.device());
  require(!loss_scale_.defined() || !factor_holds(), "{}: a loss scale was taken out of these gradients already",
          name_);
  scale_gradients(1.0);  // all gradients of now, and no others
  loss_scale_ = loss_scale;
}

double Optimizer::gradient_factor() const {
  if (!factor_holds()) return 1.0;
  return loss_scale_.defined() ? gradient_factor_ * kernels::read_loss_scale(loss_scale_).inverse : gradient_factor_;
}

bool Optimizer::factor_holds() const {
  return factor_of_.empty() || std::any_of(factor_of_.begin(), factor_of_.end(), [&](const FactorOf& of) {
           return autograd::gradient_counts(parameters_[of.parameter]).dropped == of.counts.dropped;
         });
}

void Optimizer::settle_factor() {
  if (factor_of_.empty()) return;
  std::vector<Tensor> kept;  // gradients that have the factor
  for (const FactorOf& of : factor_of_) {
    const Tensor& parameter = parameters_[of.parameter];
    const autograd::GradientCounts now = autograd::gradient_counts(parameter);
    if (now.dropped != of.counts.dropped) continue;
    require(now.given == of.counts.given || !has_factor(),
            "{}: the gradient of parameter {}, {}, was added to or replaced after it was clipped or unscaled: clip and "
            "unscale after the last backward() of a step",
            name_, of.parameter, describe(parameter));
    kept.push_back(autograd::grad(parameter));
  }
  const std::size_t now = gradients_of(parameters_).size();
  if (kept.size() == factor_of_.size() && kept.size() == now) return;
  if (!kept.empty() && has_factor()) kernels::scale_all(outs_of(kept), gradient_factor());
  end_factor();
}

void Optimizer::end_factor() {
  gradient_factor_ = 1.0;
  loss_scale_ = {};
  factor_of_.clear();
}

}  // namespace tandem::optim
