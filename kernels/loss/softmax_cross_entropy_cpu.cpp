// Softmax cross-entropy of f32 rows: each row is read once into cache and finished there.
#include "core/parallel.h"
#include "kernels/loss/softmax_cross_entropy.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace tandem::kernels::cpu {

namespace {

std::int64_t rows_per_part(std::int64_t classes) { return std::max<std::int64_t>(1, 2048 / classes); }

}  // namespace

bool supports_softmax_cross_entropy(const Tensor& logits) {
  return logits.dtype() == DType::f32 && logits.is_dense(Layout::row_major);
}

void softmax_cross_entropy_forward(const Tensor& logits, const Tensor& labels, double label_smoothing,
                                   const Tensor& loss, const Tensor& probabilities) {
  const std::int64_t rows = logits.size(0), classes = logits.size(1), label_stride = labels.stride(0);
  const float* const z = logits.data<float>();
  const std::int64_t* const label = labels.data<std::int64_t>();
  float* const p = probabilities.defined() ? probabilities.data<float>() : nullptr;
  std::vector<double> losses(static_cast<std::size_t>(rows));
  parallel_for(rows, rows_per_part(classes), [&](std::int64_t begin, std::int64_t end) {
    std::vector<float> scratch(static_cast<std::size_t>(classes));
    for (std::int64_t n = begin; n < end; ++n) {
      const float* const row = z + n * classes;
      float* const out = p != nullptr ? p + n * classes : scratch.data();
      const float largest = *std::max_element(row, row + classes);
      double sum = 0.0, row_sum = 0.0;
      for (std::int64_t c = 0; c < classes; ++c) {
        out[c] = std::exp(row[c] - largest);
        sum += static_cast<double>(out[c]);
        row_sum += static_cast<double>(row[c] - largest);
      }
      const auto factor = static_cast<float>(1.0 / sum);
      for (std::int64_t c = 0; c < classes; ++c) out[c] *= factor;
      const double on_label = static_cast<double>(row[label[n * label_stride]] - largest);
      // Without smoothing, a logit of minus infinity (a masked class) must not count.
      const double spread = label_smoothing > 0.0 ? label_smoothing * row_sum / static_cast<double>(classes) : 0.0;
      losses[static_cast<std::size_t>(n)] = std::log(sum) - (1.0 - label_smoothing) * on_label - spread;
    }
  });
  double total = 0.0;
  for (const double value : losses) total += value;
  loss.fill(total / static_cast<double>(rows));
}

void softmax_cross_entropy_backward(const Tensor& probabilities, const Tensor& labels, double label_smoothing,
                                    const Tensor& grad_loss, const Tensor& grad_logits) {
  const std::int64_t rows = probabilities.size(0), classes = probabilities.size(1), label_stride = labels.stride(0);
  const float* const p = probabilities.data<float>();
  const std::int64_t* const label = labels.data<std::int64_t>();
  float* const out = grad_logits.data<float>();
  const auto factor = static_cast<float>(grad_loss.item() / static_cast<double>(rows));
  const auto everywhere = static_cast<float>(label_smoothing / static_cast<double>(classes));
  const auto on_label = static_cast<float>(1.0 - label_smoothing);
  parallel_for(rows, rows_per_part(classes), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t n = begin; n < end; ++n) {
      const float* const from = p + n * classes;
      float* __restrict const to = out + n * classes;
      for (std::int64_t c = 0; c < classes; ++c) to[c] = factor * (from[c] - everywhere);
      const std::int64_t target = label[n * label_stride];
      to[target] = factor * (from[target] - everywhere - on_label);
    }
  });
}

}  // namespace tandem::kernels::cpu
