// Metric sums, and their reduction in f64: counts stay exact up to 2^53.
#include "tandem/train/metrics.h"

#include "tandem/kernels/loss/add_scores.h"

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
  const Tensor sums = kernels::make_score_sums(Device{});
  kernels::add_scores({}, logits.detach().to(Device{}), labels.to(Device{}), {}, Out(sums));
  return kernels::read_score_sums(sums).correct;
}

}  // namespace tandem::train
