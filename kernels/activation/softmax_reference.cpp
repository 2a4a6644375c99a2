// Softmax in plain loops, in double throughout.
#include "tandem/kernels/activation/softmax_implementations.h"

#include <algorithm>
#include <cmath>
#include <span>

namespace tandem::kernels::reference {

namespace {

/// Replaces a row by its softmax, or the logarithm of it.
void transform(SoftmaxResult result, std::span<double> row) {
  const double largest = *std::max_element(row.begin(), row.end());
  double sum = 0.0;
  for (const double x : row) sum += std::exp(x - largest);
  for (double& x : row)
    x = result == SoftmaxResult::probabilities ? std::exp(x - largest) / sum : x - largest - std::log(sum);
}

/// Replaces grad_y by the gradient of what `y` was computed from.
void transform_gradient(SoftmaxResult result, std::span<const double> y, std::span<double> grad) {
  const bool probabilities = result == SoftmaxResult::probabilities;
  double sum = 0.0;
  for (std::size_t c = 0; c < y.size(); ++c) sum += probabilities ? y[c] * grad[c] : grad[c];
  for (std::size_t c = 0; c < y.size(); ++c)
    grad[c] = probabilities ? y[c] * (grad[c] - sum) : grad[c] - std::exp(y[c]) * sum;
}

void store(const std::vector<double>& values, const Out& to) {
  dispatch_floating(to.dtype(), "softmax", [&]<typename T>(TypeTag<T>) {
    for (std::size_t i = 0; i < values.size(); ++i)
      to.data<T>()[i] = static_cast<T>(static_cast<compute_t<T>>(values[i]));
  });
}

}  // namespace

void softmax_forward(SoftmaxResult result, const Tensor& x, const Out& y) {
  const auto columns = static_cast<std::size_t>(x.size(1));
  std::vector<double> values = x.to_vector<double>();
  for (std::size_t begin = 0; begin < values.size(); begin += columns)
    transform(result, std::span(values).subspan(begin, columns));
  store(values, y);
}

void softmax_backward(SoftmaxResult result, const Tensor& y, const Tensor& grad_y, const Out& grad_x) {
  const auto columns = static_cast<std::size_t>(y.size(1));
  const std::vector<double> outputs = y.to_vector<double>();
  std::vector<double> gradients = grad_y.to_vector<double>();
  for (std::size_t begin = 0; begin < outputs.size(); begin += columns)
    transform_gradient(result, std::span(outputs).subspan(begin, columns),
                       std::span(gradients).subspan(begin, columns));
  store(gradients, grad_x);
}

}  // namespace tandem::kernels::reference
