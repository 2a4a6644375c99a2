// An L1 penalty on parameters, by its gradient.
#pragma once

#include "tandem/optim/optimizer.h"

namespace tandem::optim {

/// Adds weight * sign(w) to the gradient of each parameter w that has one, in place: what a loss plus weight * sum of
/// |w| would have given, with a slope of 0 at 0 as in PyTorch. It draws weights to 0 by equal steps (Tibshirani 1996).
/// Where a GradScaler scales losses, give weight times its scale, before unscale(); on several ranks after gradients
/// were exchanged. Nothing for a weight of 0; throws Error unless it is finite and not negative.
/// Example:
///     const Tensor w = autograd::set_requires_grad(Tensor::from<float>({3, 0, -2}, {3}));
///     autograd::set_grad(w, Tensor::zeros({3}));
///     add_l1_gradient({w}, 0.5);
///     const std::vector<float> gradient = autograd::grad(w).to_vector<float>();  // {0.5, 0, -0.5}
void add_l1_gradient(const std::vector<Tensor>& parameters, double weight);

}  // namespace tandem::optim
