// Gradient clipping by norm.
#pragma once

#include "tandem/optim/optimizer.h"

namespace tandem::optim {

/// torch.nn.utils.clip_grad_norm_ with the 2-norm: the norm of all gradients together; where it exceeds max_norm, all
/// of them are scaled in place by max_norm / (norm + 1e-6). Parameters without a gradient are passed over. Returns the
/// norm before scaling; a norm that is not finite makes the gradients NaN or 0, as in PyTorch. Throws unless max_norm >
/// 0.
/// Example:
///     const Tensor w = autograd::set_requires_grad(Tensor::zeros({2}));
///     autograd::set_grad(w, Tensor::from<float>({30, 40}, {2}));
///     const double norm = clip_grad_norm({w}, 5.0);                             // 50
///     const std::vector<float> clipped = autograd::grad(w).to_vector<float>();  // {3, 4}
double clip_grad_norm(const std::vector<Tensor>& parameters, double max_norm);

/// The same for an optimizer's gradients as they count, gradient_factor() times: the factor changes, not the gradients,
/// which are only read. Between GradScaler::unscale() and step() the norm is that of the unscaled gradients.
double clip_grad_norm(Optimizer& optimizer, double max_norm);

}  // namespace tandem::optim
