// The loss of a batch as a number, and why it is none.
#pragma once

#include "tandem/core/tensor.h"

namespace tandem::train {

/// The value of `loss`, the mean cross-entropy of `logits` [N, C] against `labels` i64[N]; waits for it. A GPU computes
/// NaN for labels outside of the classes: where the loss is not finite they are looked at, and an Error names the first
/// such one.
double batch_loss(const Tensor& loss, const Tensor& logits, const Tensor& labels);

}  // namespace tandem::train
