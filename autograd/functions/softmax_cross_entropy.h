// Differentiable softmax cross-entropy.
#pragma once

#include "tandem/core/tensor.h"

namespace tandem::autograd {

/// Mean cross-entropy of softmax(logits) against the labels, rank 0, as torch.nn.functional.cross_entropy: f64 for f64
/// logits, else f32. logits: [N, C], floating; labels: i64[N] in [0, C), or class probabilities, floating [N, C], which
/// get no gradient; else Error. label_smoothing in [0, 1].
/// Example:
///     const Tensor logits = Tensor::from<float>({0, 0, 9, 0, 9, 0}, {2, 3});
///     const Tensor labels = Tensor::from<std::int64_t>({2, 0}, {2});
///     const double loss = softmax_cross_entropy(logits, labels).item();  // 4.50025
Tensor softmax_cross_entropy(const Tensor& logits, const Tensor& labels, double label_smoothing = 0.0);

}  // namespace tandem::autograd
