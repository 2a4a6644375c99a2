// Differentiable batch normalisation, optionally with an activation behind it.
#pragma once

#include "tandem/core/tensor.h"
#include "tandem/kernels/norm/batch_norm.h"

namespace tandem::autograd {

using kernels::Activation;
using kernels::BatchNormOptions;

/// As torch.nn.functional.batch_norm; with options.activation, that of it in the same passes and without keeping more.
/// x: [N, C, H, W] or [N, C]; the others [C]: weight, bias (undefined: 1 and 0) and the running statistics, which
/// training updates in place (undefined: none kept) and evaluation normalises by. See kernels::batch_norm_forward_train
/// for errors. `moments` of x: kernels::batch_norm_forward_from_moments.
/// Example:
///     const Tensor ones = Tensor::full({64}, 1.0), zeros = Tensor::zeros({64});
///     const Tensor running_mean = Tensor::zeros({64}), running_var = Tensor::full({64}, 1.0);
///     const Tensor x = Tensor::full({8, 64, 16, 16}, 3.0);
///     const Tensor y = batch_norm(x, ones, zeros, running_mean, running_var, {.activation = Activation::relu});
///     const double mean = running_mean.select(0, 0).item();  // 0.3
Tensor batch_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
                  const Tensor& running_var, const BatchNormOptions& options, const Tensor& moments = {});

}  // namespace tandem::autograd
