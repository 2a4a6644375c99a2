// Batch normalisation over all dimensions but the channels (Ioffe, Szegedy: "Batch normalization", 2015), optionally
// with an activation f behind it; PyTorch's definitions.
//   xhat = (x - mean) / sqrt(variance + eps),  y = f(xhat * weight + bias)
#pragma once

#include "tandem/core/out.h"
#include "tandem/kernels/activation/activation.h"

namespace tandem::kernels {

struct BatchNormOptions {
  bool training = true;   // normalise by the statistics of the batch, not by the running ones
  double momentum = 0.1;  // share of the new batch in the running statistics
  double eps = 1e-5;
  Activation activation = Activation::none;
};

/// dtype of saved statistics for x of this dtype: f64 for f64, else f32.
DType batch_norm_statistics_dtype(DType x_dtype);

/// Normalises x by the mean and the biased variance of the batch; running statistics, where given, move towards the
/// mean and the *unbiased* variance by `momentum`, in place. saved_mean and saved_inverse_std get the batch's mean and
/// 1 / sqrt(variance + eps).
/// x, y: [N, C, H, W] or [N, C], one floating dtype, any strides. All others [C]: weight, bias (undefined: 1 and 0) and
/// running statistics (undefined: none kept) of any floating dtype, saved ones of batch_norm_statistics_dtype. An empty
/// batch leaves the running statistics as they are; a batch of one value per channel has no variance and is an Error.
void batch_norm_forward_train(const Tensor& x, const Tensor& weight, const Tensor& bias, const Out& running_mean,
                              const Out& running_var, const BatchNormOptions& options, const Out& y,
                              const Out& saved_mean, const Out& saved_inverse_std);

/// The same on a GPU by moments of x that conv2d_forward_with_moments left, which spare a reading of x.
void batch_norm_forward_from_moments(const Tensor& x, const Tensor& moments, const Tensor& weight, const Tensor& bias,
                                     const Out& running_mean, const Out& running_var, const BatchNormOptions& options,
                                     const Out& y, const Out& saved_mean, const Out& saved_inverse_std);

/// Normalises x by the running statistics, which it copies to saved_mean and, as 1 / sqrt(variance + eps), to
/// saved_inverse_std.
void batch_norm_forward_eval(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
                             const Tensor& running_var, const BatchNormOptions& options, const Out& y,
                             const Out& saved_mean, const Out& saved_inverse_std);

/// Gradients of either forward (options.training tells which; mean and inverse_std are those it normalised by, of
/// batch_norm_statistics_dtype). With an activation, what grad_y is multiplied by is recomputed from x. Overwrites
/// those of grad_x (shape and dtype of x), grad_weight and grad_bias ([C]) that are defined.
void batch_norm_backward(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& mean,
                         const Tensor& inverse_std, const BatchNormOptions& options, const Tensor& grad_y,
                         const Out& grad_x, const Out& grad_weight, const Out& grad_bias);

}  // namespace tandem::kernels
