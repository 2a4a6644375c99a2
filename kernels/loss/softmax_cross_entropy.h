// Softmax and cross-entropy against integer labels, in one.
#pragma once

#include "core/tensor.h"

namespace tandem::kernels {

/// dtype of loss and probabilities for logits of this dtype: f64 for f64, else f32.
DType softmax_cross_entropy_dtype(DType logits_dtype);

/// Mean over the rows of  (1 - s) * -log p[label] + s * mean over classes of -log p,  p = softmax(row), s =
/// label_smoothing (Szegedy et al.: "Rethinking the Inception architecture", 2016; PyTorch's definition). logits: [N,
/// C], floating, any strides. labels: i64[N], each in [0, C), else Error naming the first one that is not. loss: rank
/// 0; NaN for N = 0. probabilities: [N, C] dense row-major, kept for backward, or undefined. Both of
/// softmax_cross_entropy_dtype. label_smoothing lies in [0, 1].
void softmax_cross_entropy_forward(const Tensor& logits, const Tensor& labels, double label_smoothing,
                                   const Tensor& loss, const Tensor& probabilities);

/// grad_logits = grad_loss * (p - (1 - s) * onehot(label) - s / C) / N; overwrites grad_logits ([N, C], any floating
/// dtype). grad_loss: rank 0.
void softmax_cross_entropy_backward(const Tensor& probabilities, const Tensor& labels, double label_smoothing,
                                    const Tensor& grad_loss, const Tensor& grad_logits);

namespace reference {
void softmax_cross_entropy_forward(const Tensor& logits, const Tensor& labels, double label_smoothing,
                                   const Tensor& loss, const Tensor& probabilities);
void softmax_cross_entropy_backward(const Tensor& probabilities, const Tensor& labels, double label_smoothing,
                                    const Tensor& grad_loss, const Tensor& grad_logits);
}  // namespace reference

/// f32, dense row-major: exponentials in f32, rows shared out over threads.
namespace cpu {
bool supports_softmax_cross_entropy(const Tensor& logits);
void softmax_cross_entropy_forward(const Tensor& logits, const Tensor& labels, double label_smoothing,
                                   const Tensor& loss, const Tensor& probabilities);
void softmax_cross_entropy_backward(const Tensor& probabilities, const Tensor& labels, double label_smoothing,
                                    const Tensor& grad_loss, const Tensor& grad_logits);
}  // namespace cpu

}  // namespace tandem::kernels
