// Gradient clipping by norm.
#include "tandem/optim/clip_grad_norm.h"

#include "tandem/core/profiler.h"
#include "tandem/kernels/optimizer/loss_scale.h"
#include "tandem/kernels/optimizer/norm.h"

#include <cmath>

namespace tandem::optim {

namespace {

void check_bound(double max_norm) {
  require(max_norm > 0.0, "clip_grad_norm: the largest norm must be above 0, got {}", max_norm);
}

}  // namespace

double clip_grad_norm(const std::vector<Tensor>& parameters, double max_norm) {
  check_bound(max_norm);
  const ProfileRange range("clip gradients");
  const std::vector<Tensor> gradients = gradients_of(parameters);
  const double norm = std::sqrt(kernels::squared_norm(gradients));
  const double factor = kernels::clip_factor(norm, max_norm);
  if (factor != 1.0) kernels::scale_all(outs_of(gradients), factor);
  return norm;
}

double clip_grad_norm(Optimizer& optimizer, double max_norm) {
  check_bound(max_norm);
  const ProfileRange range("clip gradients");
  optimizer.scale_gradients(1.0);  // all gradients of now, and no others, have its factor
  const double stored_norm = std::sqrt(kernels::squared_norm(gradients_of(optimizer.parameters())));
  const double norm = stored_norm * std::abs(optimizer.gradient_factor());
  optimizer.scale_gradients(kernels::clip_factor(norm, max_norm));
  return norm;
}

}  // namespace tandem::optim
