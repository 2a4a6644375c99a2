// Softmax cross-entropy in plain loops: any strides, any floating dtype, in double throughout.
#include "tandem/kernels/loss/softmax_cross_entropy_implementations.h"

#include <algorithm>
#include <cmath>

namespace tandem::kernels::reference {

void softmax_cross_entropy_forward(const Tensor& logits, const Tensor& labels, double label_smoothing, const Out& loss,
                                   const Out& probabilities) {
  const std::int64_t rows = logits.size(0), classes = logits.size(1);
  const std::vector<double> z = logits.to_vector<double>();
  const std::vector<std::int64_t> label = labels.to_vector<std::int64_t>();
  std::vector<double> p(z.size());
  double total = 0.0;
  for (std::int64_t n = 0; n < rows; ++n) {
    const double* const row = z.data() + n * classes;
    double* const out = p.data() + n * classes;
    const double largest = *std::max_element(row, row + classes);
    double sum = 0.0, row_sum = 0.0;
    for (std::int64_t c = 0; c < classes; ++c) {
      out[c] = std::exp(row[c] - largest);
      sum += out[c];
      row_sum += row[c] - largest;
    }
    for (std::int64_t c = 0; c < classes; ++c) out[c] /= sum;
    const double on_label = row[label[static_cast<std::size_t>(n)]] - largest;
    // Without smoothing, a logit of minus infinity (a masked class) must not count.
    const double spread = label_smoothing > 0.0 ? label_smoothing * row_sum / static_cast<double>(classes) : 0.0;
    total += std::log(sum) - (1.0 - label_smoothing) * on_label - spread;
  }
  loss.fill(total / static_cast<double>(rows));
  if (!probabilities.defined()) return;
  dispatch_floating(probabilities.dtype(), "softmax_cross_entropy", [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* const to = probabilities.data<T>();
    for (std::size_t i = 0; i < p.size(); ++i) to[i] = T(static_cast<compute_t<T>>(p[i]));
  });
}

void softmax_cross_entropy_backward(const Tensor& probabilities, const Tensor& labels, double label_smoothing,
                                    const Tensor& grad_loss, const Out& grad_logits) {
  const std::int64_t rows = probabilities.size(0), classes = probabilities.size(1);
  const std::vector<double> p = probabilities.to_vector<double>();
  const std::vector<std::int64_t> label = labels.to_vector<std::int64_t>();
  const double factor = grad_loss.item() / static_cast<double>(rows);
  dispatch_floating(grad_logits.dtype(), "softmax_cross_entropy_backward", [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* const to = grad_logits.data<T>();
    for (std::int64_t n = 0; n < rows; ++n) {
      for (std::int64_t c = 0; c < classes; ++c) {
        const double target = (c == label[static_cast<std::size_t>(n)] ? 1.0 - label_smoothing : 0.0) +
                              label_smoothing / static_cast<double>(classes);
        const double gradient = factor * (p[static_cast<std::size_t>(n * classes + c)] - target);
        to[n * grad_logits.stride(0) + c * grad_logits.stride(1)] = T(static_cast<compute_t<T>>(gradient));
      }
    }
  });
}

}  // namespace tandem::kernels::reference
