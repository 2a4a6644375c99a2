// Negative log likelihood of labels.
#pragma once

#include "tandem/core/out.h"

namespace tandem::kernels {

/// losses[n] = -log_probabilities[n, labels[n]]. log_probabilities: [N, C] with C >= 1, floating, any strides; labels:
/// i64[N], each in [0, C); losses: [N] of softmax_cross_entropy_dtype, any strides. Throws Error where that does not
/// hold; labels outside of the classes are treated as by softmax_cross_entropy_forward: an Error on the CPU, on a GPU a
/// loss of NaN.
void nll_loss_forward(const Tensor& log_probabilities, const Tensor& labels, const Out& losses);

/// grad[n, c] = -grad_losses[n] where c is labels[n], else 0; overwrites grad ([N, C], any floating dtype, any
/// strides). grad_losses: [N], any floating dtype and strides. On a GPU, a label outside of the classes makes its row
/// NaN.
void nll_loss_backward(const Tensor& labels, const Tensor& grad_losses, const Out& grad);

}  // namespace tandem::kernels
