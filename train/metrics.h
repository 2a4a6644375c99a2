// Loss and accuracy over many batches and many ranks.
#pragma once

#include "tandem/comm/process_group.h"
#include "tandem/core/tensor.h"

#include <cstdint>

namespace tandem::train {

/// Sums from which means are taken once, at the end: each image counts alike, whatever the sizes of batches. Counts are
/// exact, the loss but for the rounding of f64.
/// Example:
///     Metrics metrics;
///     metrics.add(0.5, 3, 4);  // of 4 images 3 right
///     metrics.add(0.7, 5, 6);
///     const double loss = metrics.loss();          // 0.62
///     const double accuracy = metrics.accuracy();  // 80
struct Metrics {
  double loss_sum = 0.0;     ///< of the loss of each image
  std::int64_t correct = 0;  ///< images whose class was predicted
  std::int64_t count = 0;    ///< images

  /// Adds a batch of `images` with this mean loss.
  void add(double mean_loss, std::int64_t correct_images, std::int64_t images) {
    loss_sum += mean_loss * static_cast<double>(images);
    correct += correct_images;
    count += images;
  }

  /// Mean loss per image; NaN of nothing.
  double loss() const { return loss_sum / static_cast<double>(count); }
  /// Percent; NaN of nothing.
  double accuracy() const { return 100.0 * static_cast<double>(correct) / static_cast<double>(count); }
};

/// The sums over all ranks, the same on each. Collective.
Metrics sum_over_ranks(const Metrics& mine, comm::ProcessGroup& group);

/// The largest of all ranks' values. Collective.
double max_over_ranks(double mine, comm::ProcessGroup& group);

/// Rows of `logits` (floating [N, C]) whose largest element stands at the label (i64 [N]); a row with NaN is never
/// right, and of equal elements the first counts as the largest. On any device, for which it waits. Throws Error for
/// other tensors.
std::int64_t count_correct(const Tensor& logits, const Tensor& labels);

}  // namespace tandem::train
