// Loss and accuracy of batches, added up where they were computed.
#pragma once

#include "tandem/core/out.h"

#include <cstdint>

namespace tandem::kernels {

/// What is added up over batches, as it lies in a device's memory.
struct ScoreSums {
  double loss_sum = 0.0;       // over rows
  double step_loss_sum = 0.0;  // the same over the batches of a step
  std::int64_t correct = 0;    // rows whose largest element stands at their label
  std::int64_t count = 0;      // rows
};

/// How a batch counts.
struct BatchCount {
  std::int64_t rows = 0;     // the weight of its mean loss, and what is counted
  bool begins_step = false;  // step_loss_sum begins with it
};

/// A tensor for add_scores() that holds these sums.
Tensor make_score_sums(Device device, const ScoreSums& sums = {});
/// What such a tensor on the CPU holds.
ScoreSums read_score_sums(const Tensor& sums);

/// Adds a batch to `sums`, u8[sizeof(ScoreSums)] of make_score_sums(). loss: its mean loss, one floating number, or
/// undefined: 0. logits: floating [N, C], any strides; labels: i64[N], any strides; both undefined: no row is correct.
/// Elements are compared as f32; a row with NaN is never correct, and of equal elements the first counts as the
/// largest. All on one device; a GPU takes no f64 logits, and nobody waits. Throws Error for other tensors. The sums
/// have the bits of those that a host adds up batch by batch, as long as the loss is no f64 and rows are below 2^29.
void add_scores(const Tensor& loss, const Tensor& logits, const Tensor& labels, const BatchCount& count,
                const Out& sums);

}  // namespace tandem::kernels
