// Normalisation of rows in plain loops, in double throughout.
#include "tandem/kernels/norm/channel_values.h"
#include "tandem/kernels/norm/row_norm_implementations.h"

#include <cmath>
#include <vector>

namespace tandem::kernels::reference {

namespace {

using detail::ChannelValues;

/// A matrix as doubles, and which parameter belongs to which of its elements.
struct Matrix {
  std::size_t rows, columns, groups, repeats;
  std::vector<double> values;

  Matrix(const Tensor& x, const RowNormOptions& options)
      : rows(static_cast<std::size_t>(x.size(0))),
        columns(static_cast<std::size_t>(x.size(1))),
        groups(static_cast<std::size_t>(options.groups)),
        repeats(static_cast<std::size_t>(options.repeats)),
        values(x.to_vector<double>()) {}

  double& operator()(std::size_t row, std::size_t c) { return values[row * columns + c]; }
  std::size_t parameter(std::size_t row, std::size_t c) const {
    return row % groups * (columns / repeats) + c / repeats;
  }
  std::int64_t parameters() const { return static_cast<std::int64_t>(groups * (columns / repeats)); }

  void store(const Out& to) const {
    dispatch_floating(to.dtype(), "row_norm", [&]<typename T>(TypeTag<T>) {
      for (std::size_t i = 0; i < values.size(); ++i)
        to.data<T>()[i] = static_cast<T>(static_cast<compute_t<T>>(values[i]));
    });
  }
};

}  // namespace

void row_norm_forward(std::string_view, const Tensor& x, const Tensor& weight, const Tensor& bias,
                      const RowNormOptions& options, const Out& y, const Out& mean, const Out& inverse_std) {
  Matrix m(x, options);
  const ChannelValues weights = detail::load_channels(weight, m.parameters(), 1.0),
                      biases = detail::load_channels(bias, m.parameters(), 0.0);
  const auto count = static_cast<double>(m.columns);
  ChannelValues means(m.rows), inverses(m.rows);
  for (std::size_t row = 0; row < m.rows; ++row) {
    double squares = 0.0;
    for (std::size_t c = 0; c < m.columns; ++c) means[row] += m(row, c) / count;
    for (std::size_t c = 0; c < m.columns; ++c) squares += (m(row, c) - means[row]) * (m(row, c) - means[row]);
    inverses[row] = 1.0 / std::sqrt(squares / count + options.eps);
    for (std::size_t c = 0; c < m.columns; ++c) {
      const std::size_t p = m.parameter(row, c);
      m(row, c) = (m(row, c) - means[row]) * inverses[row] * weights[p] + biases[p];
    }
  }
  m.store(y);
  detail::store_channels(means, mean);
  detail::store_channels(inverses, inverse_std);
}

void row_norm_backward(std::string_view, const Tensor& x, const Tensor& weight, const Tensor& mean,
                       const Tensor& inverse_std, const RowNormOptions& options, const Tensor& grad_y,
                       const Out& grad_x, const Out& grad_weight, const Out& grad_bias) {
  Matrix m(x, options), grad(grad_y, options);
  const ChannelValues weights = detail::load_channels(weight, m.parameters(), 1.0), means = mean.to_vector<double>(),
                      inverses = inverse_std.to_vector<double>();
  const auto count = static_cast<double>(m.columns);
  ChannelValues weight_sums(weights.size()), bias_sums(weights.size());
  for (std::size_t row = 0; row < m.rows; ++row) {
    double sum = 0.0, sum_normalised = 0.0;
    for (std::size_t c = 0; c < m.columns; ++c) {
      const std::size_t p = m.parameter(row, c);
      m(row, c) = (m(row, c) - means[row]) * inverses[row];  // xhat
      bias_sums[p] += grad(row, c);
      weight_sums[p] += grad(row, c) * m(row, c);
      grad(row, c) *= weights[p];
      sum += grad(row, c);
      sum_normalised += grad(row, c) * m(row, c);
    }
    for (std::size_t c = 0; c < m.columns; ++c)
      grad(row, c) = inverses[row] * (grad(row, c) - (sum + m(row, c) * sum_normalised) / count);
  }
  detail::store_channels(bias_sums, grad_bias);
  detail::store_channels(weight_sums, grad_weight);
  if (grad_x.defined()) grad.store(grad_x);
}

}  // namespace tandem::kernels::reference
