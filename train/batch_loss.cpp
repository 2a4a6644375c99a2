// Reading the loss.
#include "tandem/train/batch_loss.h"

#include "tandem/kernels/loss/softmax_cross_entropy.h"

#include <cmath>

namespace tandem::train {

double batch_loss(const Tensor& loss, const Tensor& logits, const Tensor& labels) {
  const double value = loss.item();
  if (!std::isfinite(value)) kernels::require_labels(labels, logits.size(1));
  return value;
}

}  // namespace tandem::train
