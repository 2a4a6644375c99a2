// The loss of a batch as a number, and why it is none.
#pragma once

#include "tandem/core/tensor.h"

namespace tandem::train {

/// The value of `loss`, the mean cross-entropy of `logits` [N, C] against `labels` i64[N]; waits for it. A GPU computes
/// NaN for labels outside of the classes: where the loss is not finite they are looked at, and an Error names the first
/// such one.
/// Example:
///     #include "tandem/autograd/functions.h"
///     const Tensor logits = Tensor::zeros({2, 4}), labels = Tensor::from<std::int64_t>({1, 3}, {2});
///     const double loss = batch_loss(autograd::softmax_cross_entropy(logits, labels), logits, labels);  // 1.38629
double batch_loss(const Tensor& loss, const Tensor& logits, const Tensor& labels);

}  // namespace tandem::train
