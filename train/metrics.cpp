// Metric sums, and their reduction in f64: counts stay exact up to 2^53.
#include "tandem/train/metrics.h"

#include "tandem/autograd/functions/cast.h"

#include <cmath>

namespace tandem::train {

Metrics sum_over_ranks(const Metrics& mine, comm::ProcessGroup& group) {
  const Tensor sums = Tensor::from<double>(
      std::vector<double>{mine.loss_sum, static_cast<double>(mine.correct), static_cast<double>(mine.count)}, {3});
  group.all_reduce(Out(sums));
  const double* values = sums.data<double>();
  return {values[0], static_cast<std::int64_t>(values[1]), static_cast<std::int64_t>(values[2])};
}

double max_over_ranks(double mine, comm::ProcessGroup& group) {
  const Tensor value = Tensor::full({1}, mine, {.dtype = DType::f64});
  group.all_reduce(Out(value), comm::ReduceOp::max);
  return value.item();
}

std::int64_t count_correct(const Tensor& logits, const Tensor& labels) {
  require(logits.rank() == 2 && labels.rank() == 1 && logits.size(0) == labels.size(0),
          "count_correct: needs logits [N, C] and labels [N], got {} and {}", describe(logits), describe(labels));
  // Widened here: on a GPU that would be a pass of its own.
  const Tensor rows = autograd::cast(logits.detach().to(Device{}), DType::f32).contiguous();
  const Tensor targets = labels.to(Device{}).contiguous();
  const auto* values = rows.data<float>();
  const auto* wanted = targets.data<std::int64_t>();
  const std::int64_t classes = rows.size(1);
  std::int64_t correct = 0;
  for (std::int64_t n = 0; n < rows.size(0); ++n) {
    const float* row = values + n * classes;
    std::int64_t best = 0;
    bool comparable = classes > 0;
    for (std::int64_t c = 0; c < classes; ++c) {
      comparable = comparable && !std::isnan(row[c]);
      if (row[c] > row[best]) best = c;
    }
    if (comparable && best == wanted[n]) ++correct;
  }
  return correct;
}

}  // namespace tandem::train
