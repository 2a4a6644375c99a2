// Softmax and cross-entropy against integer labels, in one.
#pragma once

#include "tandem/core/out.h"

#include <cstdint>
#include <optional>
#include <string_view>

namespace tandem::kernels {

/// dtype of loss and probabilities for logits of this dtype: f64 for f64, else f32.
DType softmax_cross_entropy_dtype(DType logits_dtype);

/// Mean over the rows of  (1 - s) * -log p[label] + s * mean over classes of -log p,  p = softmax(row), s =
/// label_smoothing (Szegedy et al.: "Rethinking the Inception architecture", 2016; PyTorch's definition). logits: [N,
/// C], floating, any strides. labels: i64[N], each in [0, C). loss: rank 0; NaN for N = 0. probabilities: [N, C] dense
/// row-major, kept for backward, or undefined. Both of softmax_cross_entropy_dtype. label_smoothing lies in [0, 1].
///
/// A label outside of the classes is an Error (require_labels) on the CPU. On a GPU nobody waits for the check: such a
/// label makes the loss and its row of the gradient NaN; who reads a loss that is not finite asks require_labels why.
void softmax_cross_entropy_forward(const Tensor& logits, const Tensor& labels, double label_smoothing, const Out& loss,
                                   const Out& probabilities);

/// Throws Error that begins with `op` and names the first label that is neither in [0, classes) nor `ignored`. labels:
/// i64[N], on any device; waits for it.
void require_labels(const Tensor& labels, std::int64_t classes, std::string_view op = "softmax_cross_entropy",
                    std::optional<std::int64_t> ignored = {});

/// grad_logits = grad_loss * (p - (1 - s) * onehot(label) - s / C) / N; overwrites grad_logits ([N, C], any floating
/// dtype). grad_loss: rank 0.
void softmax_cross_entropy_backward(const Tensor& probabilities, const Tensor& labels, double label_smoothing,
                                    const Tensor& grad_loss, const Out& grad_logits);

}  // namespace tandem::kernels
