// Sums of loss and accuracy in plain loops.
#include "tandem/kernels/loss/add_scores_implementations.h"

#include <cmath>

namespace tandem::kernels::reference {

namespace {

/// Whether the largest of `classes` elements, `stride` apart, stands at `label`.
template <typename T>
bool is_correct(const T* row, std::int64_t classes, std::int64_t stride, std::int64_t label) {
  std::int64_t best = 0;
  bool comparable = classes > 0;
  float largest = 0.0f;
  for (std::int64_t c = 0; c < classes; ++c) {
    const auto value = static_cast<float>(row[c * stride]);
    comparable = comparable && !std::isnan(value);
    if (c > 0 && !(value > largest)) continue;
    largest = value;
    best = c;
  }
  return comparable && best == label;
}

std::int64_t count_correct(const Tensor& logits, const Tensor& labels) {
  const std::int64_t* const label = labels.data<std::int64_t>();
  std::int64_t correct = 0;
  dispatch_floating(logits.dtype(), "add_scores", [&]<typename T>(TypeTag<T>) {
    const T* const rows = logits.data<T>();
    for (std::int64_t n = 0; n < logits.size(0); ++n)
      correct += is_correct(rows + n * logits.stride(0), logits.size(1), logits.stride(1), label[n * labels.stride(0)]);
  });
  return correct;
}

}  // namespace

void add_scores(const Tensor& loss, const Tensor& logits, const Tensor& labels, const BatchCount& count,
                const Out& sums) {
  auto& result = *static_cast<ScoreSums*>(sums.raw_data());
  const double added = loss.defined() ? loss.item() * static_cast<double>(count.rows) : 0.0;
  result.loss_sum += added;
  result.step_loss_sum = (count.begins_step ? 0.0 : result.step_loss_sum) + added;
  result.count += count.rows;
  if (logits.defined()) result.correct += count_correct(logits, labels);
}

}  // namespace tandem::kernels::reference
