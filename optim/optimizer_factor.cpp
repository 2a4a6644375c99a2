// The factor that gradients have from clipping and loss scaling: whose it is, and when it ends.
#include "tandem/autograd/variable.h"
#include "tandem/core/error.h"
#include "tandem/core/profiler.h"
#include "tandem/core/work_graph.h"
#include "tandem/kernels/optimizer/loss_scale.h"
#include "tandem/kernels/optimizer/norm.h"
#include "tandem/optim/clip_grad_norm.h"
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
  require(!is_clipped() || !factor_holds(),
          "{}: these gradients are clipped already; take the loss scale out of them before that", name_);
  require(!loss_scale_.defined() || !factor_holds(), "{}: a loss scale was taken out of these gradients already",
          name_);
  scale_gradients(1.0);  // all gradients of now, and no others
  loss_scale_ = loss_scale;
}

void Optimizer::clip_gradients(double max_norm) {
  const Device device = parameters_.front().device();
  if (device.type != DeviceType::cuda || !looks_at_loss_scale()) {
    clip_grad_norm(*this, max_norm);
    return;
  }
  require(max_norm > 0.0, "clip_grad_norm: the largest norm must be above 0, got {}", max_norm);
  const ProfileRange range("clip gradients");
  scale_gradients(1.0);  // all gradients of now, and no others
  const std::vector<Tensor> gradients = gradients_of(parameters_);
  if (gradients.empty()) return;
  if (!clipping_.scale.defined() || clipping_.scale.device() != device) {
    require(!WorkGraph::is_recording(), "{}: clipping cannot be recorded before it was done once", name_);
    clipping_.scale = kernels::make_loss_scale(device, {});
  }
  kernels::clip_by_loss_scale(kernels::squared_norm_there(gradients, &clipping_.table), max_norm, gradient_factor_,
                              loss_scale_, Out(clipping_.scale));
  loss_scale_ = clipping_.scale;
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
