// Gradient clipping by norm.
#include "optim/clip_grad_norm.h"

#include "autograd/variable.h"
#include "core/profile.h"
#include "kernels/optimizer/norm.h"

#include <cmath>

namespace tandem::optim {

double clip_grad_norm(const std::vector<Tensor>& parameters, double max_norm) {
  require(max_norm > 0.0, "clip_grad_norm: the largest norm must be above 0, got {}", max_norm);
  const ProfileRange range("clip gradients");
  std::vector<Tensor> gradients;
  for (const Tensor& parameter : parameters) {
    const Tensor gradient = autograd::grad(parameter);
    if (gradient.defined()) gradients.push_back(gradient);
  }
  const double norm = std::sqrt(kernels::squared_norm(gradients));
  const double factor = max_norm / (norm + 1e-6);
  if (!(factor >= 1.0)) kernels::scale_all(gradients, factor);
  return norm;
}

}  // namespace tandem::optim
