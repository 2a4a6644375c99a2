// Softmax of rows of floats or halves, in float: a row is read from memory once and finished in the cache.
#include "tandem/core/parallel.h"
#include "tandem/kernels/activation/exp_row.h"
#include "tandem/kernels/activation/softmax_implementations.h"
#include "tandem/kernels/activation/vector_math.h"
#include "tandem/kernels/cast/float_runs.h"
#include "tandem/kernels/reduce/lane_sum.h"

#include <algorithm>
#include <cmath>

namespace tandem::kernels::cpu {

namespace {

/// Rows that a thread takes at least.
std::int64_t rows_per_part(std::int64_t columns) { return std::max<std::int64_t>(1, 4096 / columns); }

void transform(SoftmaxResult result, const float* __restrict row, std::int64_t count, float* __restrict to) {
  const auto [largest, sum] = exp_row(row, count, to);
  if (result == SoftmaxResult::probabilities) {
    const auto factor = static_cast<float>(1.0 / sum);
    for (std::int64_t c = 0; c < count; ++c) to[c] *= factor;
  } else {
    const auto log_sum = static_cast<float>(std::log(sum));
    for (std::int64_t c = 0; c < count; ++c) to[c] = row[c] - largest - log_sum;
  }
}

/// Sum of a[i] b[i] in f64.
double lane_dot(const float* a, const float* b, std::int64_t count) {
  constexpr std::int64_t kLanes = 32;
  double lanes[kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane)
      lanes[lane] += static_cast<double>(a[i + lane]) * static_cast<double>(b[i + lane]);
  }
  double sum = 0.0;
  for (; i < count; ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  for (const double lane : lanes) sum += lane;
  return sum;
}

void transform_gradient(SoftmaxResult result, const float* __restrict y, const float* __restrict grad,
                        std::int64_t count, float* __restrict to) {
  if (result == SoftmaxResult::probabilities) {
    const auto sum = static_cast<float>(lane_dot(y, grad, count));
    for (std::int64_t c = 0; c < count; ++c) to[c] = y[c] * (grad[c] - sum);
  } else {
    const auto sum = static_cast<float>(lane_sum(grad, count, 1));
    for (std::int64_t c = 0; c < count; ++c) to[c] = grad[c] - vector_exp_of_negative(y[c]) * sum;
  }
}

}  // namespace

void softmax_forward(SoftmaxResult result, const Tensor& x, const Out& y) {
  const std::int64_t columns = x.size(1);
  float* const to = y.data<float>();
  dispatch_float(x.dtype(), "softmax_forward", [&]<typename T>(TypeTag<T>) {
    const T* const from = x.data<T>();
    parallel_for(x.size(0), rows_per_part(columns), [&](std::int64_t begin, std::int64_t end) {
      RunReader<T> read(columns);
      for (std::int64_t row = begin; row < end; ++row)
        transform(result, read(from + row * columns, columns), columns, to + row * columns);
    });
  });
}

void softmax_backward(SoftmaxResult result, const Tensor& y, const Tensor& grad_y, const Out& grad_x) {
  const std::int64_t columns = y.size(1);
  const float *const outputs = y.data<float>(), *const gradients = grad_y.data<float>();
  dispatch_float(grad_x.dtype(), "softmax_backward", [&]<typename T>(TypeTag<T>) {
    T* const to = grad_x.data<T>();
    parallel_for(y.size(0), rows_per_part(columns), [&](std::int64_t begin, std::int64_t end) {
      RunWriter<T> write(columns);
      for (std::int64_t row = begin; row < end; ++row) {
        const std::int64_t at = row * columns;
        write(to + at, columns,
              [&](float* out) { transform_gradient(result, outputs + at, gradients + at, columns, out); });
      }
    });
  });
}

}  // namespace tandem::kernels::cpu
