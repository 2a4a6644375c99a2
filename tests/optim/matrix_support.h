// Matrices in double by plain loops: products, Newton-Schulz, singular values, and how far rounding may lead.
#pragma once

#include "tandem/layers/symmetric_eigen.h"
#include "tandem/optim/newton_schulz.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace tandem::test {

struct Matrix {
  std::int64_t rows, columns;
  std::vector<double> values;  // row by row

  double& at(std::int64_t i, std::int64_t j) { return values[static_cast<std::size_t>(i * columns + j)]; }
  double at(std::int64_t i, std::int64_t j) const { return values[static_cast<std::size_t>(i * columns + j)]; }
};

inline Matrix zeros(std::int64_t rows, std::int64_t columns) {
  return {rows, columns, std::vector<double>(static_cast<std::size_t>(rows * columns), 0.0)};
}

inline Matrix transposed(const Matrix& m) {
  Matrix result = zeros(m.columns, m.rows);
  for (std::int64_t i = 0; i < m.rows; ++i)
    for (std::int64_t j = 0; j < m.columns; ++j) result.at(j, i) = m.at(i, j);
  return result;
}

inline Matrix product(const Matrix& a, const Matrix& b) {
  Matrix result = zeros(a.rows, b.columns);
  for (std::int64_t i = 0; i < a.rows; ++i)
    for (std::int64_t k = 0; k < a.columns; ++k)
      for (std::int64_t j = 0; j < b.columns; ++j) result.at(i, j) += a.at(i, k) * b.at(k, j);
  return result;
}

/// p a + q b
inline Matrix combined(double p, const Matrix& a, double q, const Matrix& b) {
  Matrix result = a;
  for (std::size_t i = 0; i < a.values.size(); ++i) result.values[i] = p * a.values[i] + q * b.values[i];
  return result;
}

inline double norm_of(const std::vector<double>& values) {
  double sum = 0.0;
  for (const double value : values) sum += value * value;
  return std::sqrt(sum);
}

/// By the formula of newton_schulz.h, from one side for all matrices.
inline Matrix plain_newton_schulz(const Matrix& m, const optim::NewtonSchulzOptions& o) {
  const double scale = 1.0 / (norm_of(m.values) + o.eps);
  Matrix x = combined(scale, m, 0.0, m);
  for (std::int64_t step = 0; step < o.steps; ++step) {
    const Matrix gram = product(x, transposed(x));
    const Matrix factor = combined(o.coefficients[1], gram, o.coefficients[2], product(gram, gram));
    x = combined(o.coefficients[0], x, 1.0, product(factor, x));
  }
  return x;
}

/// What a singular value of a matrix of norm 1 becomes.
inline double plain_newton_schulz(double s, const optim::NewtonSchulzOptions& o) {
  const auto& [a, b, c] = o.coefficients;
  for (std::int64_t step = 0; step < o.steps; ++step) s = s * (a + b * s * s + c * s * s * s * s);
  return s;
}

/// The largest first; of a matrix of few rows or few columns.
inline std::vector<double> singular_values(const Matrix& m) {
  const Matrix gram = m.rows <= m.columns ? product(m, transposed(m)) : product(transposed(m), m);
  std::vector<double> values = layers::symmetric_eigen(gram.values, gram.rows).values;
  for (double& value : values) value = std::sqrt(std::max(value, 0.0));
  return values;
}

/// Of the Frobenius norm of the error of Newton-Schulz with the default coefficients, from a matrix of which each
/// element is off by `given` times its size. No singular value leaves [0, 1.21] on the way, and there neither the
/// polynomial's slope nor its secants are above a = 3.4445, which is what each step multiplies errors by. To these it
/// adds its own, for an n-term sum of products n times the unit roundoff of the sum of magnitudes, of (a I + b A + c A
/// A) X as well as of a X + (b A + c A A) X. Twice that, for what is of second order.
inline double newton_schulz_bound(std::int64_t rows, std::int64_t columns, std::int64_t steps, double unit,
                                  double given = 0.0) {
  constexpr double kA = 3.4445, kB = 4.7750, kC = 2.0315, kLargest = 1.21;
  const auto rank = static_cast<double>(std::min(rows, columns)), depth = static_cast<double>(std::max(rows, columns));
  const double norm = kLargest * std::sqrt(rank);
  const double of_gram = (depth + 1.0) * unit * norm * norm;
  const double factor = norm * (kB * kLargest + kC * std::pow(kLargest, 3));
  const double of_factor = (kB + 2.0 * kC * kLargest * kLargest) * of_gram +
                           kC * (rank + 1.0) * unit * kLargest * kLargest * norm * norm + 3.0 * unit * factor;
  const double fresh =
      kLargest * of_factor + (rank + 1.0) * unit * (factor + kA) * norm + 3.0 * unit * (kA * norm + kLargest * factor);
  double error = 8.0 * unit + 2.0 * given;
  for (std::int64_t step = 0; step < steps; ++step) error = kA * error + fresh;
  return 2.0 * error;
}

}  // namespace tandem::test
