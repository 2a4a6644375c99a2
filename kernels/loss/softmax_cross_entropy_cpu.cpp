// Softmax cross-entropy of rows of floats or halves, in float: each row is read once into cache and finished there.
#include "tandem/core/parallel.h"
#include "tandem/kernels/activation/exp_row.h"
#include "tandem/kernels/cast/float_runs.h"
#include "tandem/kernels/loss/softmax_cross_entropy_implementations.h"
#include "tandem/kernels/reduce/lane_sum.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace tandem::kernels::cpu {

namespace {

std::int64_t rows_per_part(std::int64_t classes) { return std::max<std::int64_t>(1, 2048 / classes); }

/// Row `n` of a matrix as floats: in place, or widened into `buffer`.
template <typename T>
const float* float_row(const T* matrix, std::int64_t n, std::int64_t columns, [[maybe_unused]] float* buffer) {
  if constexpr (is_float<T>) {
    return matrix + n * columns;
  } else {
    widen(matrix + n * columns, columns, buffer);
    return buffer;
  }
}

/// Mean of row[c] - largest.
double mean_difference(const float* row, float largest, std::int64_t count) {
  return lane_sum(row, count, 1) / static_cast<double>(count) - static_cast<double>(largest);
}

template <typename T>
void forward(const Tensor& logits, const Tensor& labels, double label_smoothing, const Out& loss,
             const Out& probabilities) {
  const std::int64_t rows = logits.size(0), classes = logits.size(1), label_stride = labels.stride(0);
  const T* const z = logits.data<T>();
  const std::int64_t* const label = labels.data<std::int64_t>();
  float* const p = probabilities.defined() ? probabilities.data<float>() : nullptr;
  std::vector<double> losses(static_cast<std::size_t>(rows));
  parallel_for(rows, rows_per_part(classes), [&](std::int64_t begin, std::int64_t end) {
    std::vector<float> scratch(static_cast<std::size_t>(classes)), widened(scratch.size());
    for (std::int64_t n = begin; n < end; ++n) {
      const float* const row = float_row(z, n, classes, widened.data());
      float* const out = p != nullptr ? p + n * classes : scratch.data();
      const auto [largest, sum] = exp_row(row, classes, out);
      const auto factor = static_cast<float>(1.0 / sum);
      for (std::int64_t c = 0; c < classes; ++c) out[c] *= factor;
      const double on_label = static_cast<double>(row[label[n * label_stride]] - largest);
      // Without smoothing, a logit of minus infinity (a masked class) must not count.
      const double spread = label_smoothing > 0.0 ? label_smoothing * mean_difference(row, largest, classes) : 0.0;
      losses[static_cast<std::size_t>(n)] = std::log(sum) - (1.0 - label_smoothing) * on_label - spread;
    }
  });
  double total = 0.0;
  for (const double value : losses) total += value;
  loss.fill(total / static_cast<double>(rows));
}

void write_gradient(const float* __restrict p, std::int64_t classes, std::int64_t label, float factor, float everywhere,
                    float on_label, float* __restrict to) {
  for (std::int64_t c = 0; c < classes; ++c) to[c] = factor * (p[c] - everywhere);
  to[label] = factor * (p[label] - everywhere - on_label);
}

template <typename T>
void backward(const Tensor& probabilities, const Tensor& labels, double label_smoothing, const Tensor& grad_loss,
              const Out& grad_logits) {
  const std::int64_t rows = probabilities.size(0), classes = probabilities.size(1), label_stride = labels.stride(0);
  const float* const p = probabilities.data<float>();
  const std::int64_t* const label = labels.data<std::int64_t>();
  T* const out = grad_logits.data<T>();
  const auto factor = static_cast<float>(grad_loss.item() / static_cast<double>(rows));
  const auto everywhere = static_cast<float>(label_smoothing / static_cast<double>(classes));
  const auto on_label = static_cast<float>(1.0 - label_smoothing);
  parallel_for(rows, rows_per_part(classes), [&](std::int64_t begin, std::int64_t end) {
    std::vector<float> scratch(static_cast<std::size_t>(is_float<T> ? 0 : classes));
    for (std::int64_t n = begin; n < end; ++n) {
      const float* const from = p + n * classes;
      float* to = scratch.data();
      if constexpr (is_float<T>) to = out + n * classes;
      write_gradient(from, classes, label[n * label_stride], factor, everywhere, on_label, to);
      if constexpr (!is_float<T>) round_floats(to, classes, out + n * classes);
    }
  });
}

}  // namespace

bool supports_softmax_cross_entropy(const Tensor& logits) {
  return computes_in_float(logits.dtype()) && logits.is_dense(Layout::row_major);
}

void softmax_cross_entropy_forward(const Tensor& logits, const Tensor& labels, double label_smoothing, const Out& loss,
                                   const Out& probabilities) {
  dispatch_float(logits.dtype(), "softmax_cross_entropy", [&](auto tag) {
    forward<typename decltype(tag)::type>(logits, labels, label_smoothing, loss, probabilities);
  });
}

void softmax_cross_entropy_backward(const Tensor& probabilities, const Tensor& labels, double label_smoothing,
                                    const Tensor& grad_loss, const Out& grad_logits) {
  dispatch_float(grad_logits.dtype(), "softmax_cross_entropy_backward", [&](auto tag) {
    backward<typename decltype(tag)::type>(probabilities, labels, label_smoothing, grad_loss, grad_logits);
  });
}

}  // namespace tandem::kernels::cpu
