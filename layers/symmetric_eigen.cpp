// Jacobi's rotations: each makes one pair of elements off the diagonal 0.
#include "tandem/layers/symmetric_eigen.h"

#include "tandem/core/error.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace tandem::layers {

namespace {

void check_symmetric(std::span<const double> matrix, std::int64_t n) {
  require(n >= 0 && std::ssize(matrix) == n * n, "symmetric_eigen: {} elements are no matrix of {} x {}", matrix.size(),
          n, n);
  double largest = 0.0;
  for (const double element : matrix) {
    require(std::isfinite(element), "symmetric_eigen: the matrix holds {}; all elements must be finite", element);
    largest = std::max(largest, std::abs(element));
  }
  for (std::int64_t row = 0; row < n; ++row) {
    for (std::int64_t column = 0; column < row; ++column) {
      const double below = matrix[static_cast<std::size_t>(row * n + column)],
                   above = matrix[static_cast<std::size_t>(column * n + row)];
      require(std::abs(below - above) <= 1e-9 * largest,
              "symmetric_eigen: the matrix is not symmetric: element ({}, {}) is {}, ({}, {}) is {}", row, column,
              below, column, row, above);
    }
  }
}

/// The matrix on its way to a diagonal one, and the rotations so far, a vector in each row.
class Rotations {
 public:
  Rotations(std::span<const double> matrix, std::int64_t n)
      : n_(static_cast<std::size_t>(n)), a_(matrix.begin(), matrix.end()), vectors_(n_ * n_, 0.0) {
    for (std::size_t i = 0; i < n_; ++i) vectors_[i * n_ + i] = 1.0;
  }

  /// Rotates every pair once; whether any needed it.
  bool sweep() {
    bool rotated = false;
    for (std::size_t p = 0; p < n_; ++p)
      for (std::size_t q = p + 1; q < n_; ++q) rotated = rotate(p, q) || rotated;
    return rotated;
  }
  double value(std::size_t i) const { return a_[i * n_ + i]; }
  std::span<const double> vector(std::size_t i) const { return std::span(vectors_).subspan(i * n_, n_); }

 private:
  /// What is that much smaller than both of its diagonal elements changes no digit of either.
  bool rotate(std::size_t p, std::size_t q) {
    const double apq = a_[p * n_ + q], app = value(p), aqq = value(q);
    if (std::abs(apq) <= 0x1p-53 * std::sqrt(std::abs(app)) * std::sqrt(std::abs(aqq))) return false;
    const double theta = (aqq - app) / (2.0 * apq);
    const double t = std::copysign(1.0, theta) / (std::abs(theta) + std::hypot(theta, 1.0));
    const double c = 1.0 / std::hypot(t, 1.0), s = t * c;
    for (std::size_t k = 0; k < n_; ++k) {
      if (k != p && k != q) {
        const double akp = a_[k * n_ + p], akq = a_[k * n_ + q];
        a_[k * n_ + p] = a_[p * n_ + k] = c * akp - s * akq;
        a_[k * n_ + q] = a_[q * n_ + k] = s * akp + c * akq;
      }
      const double vp = vectors_[p * n_ + k], vq = vectors_[q * n_ + k];
      vectors_[p * n_ + k] = c * vp - s * vq;
      vectors_[q * n_ + k] = s * vp + c * vq;
    }
    a_[p * n_ + p] = app - t * apq;
    a_[q * n_ + q] = aqq + t * apq;
    a_[p * n_ + q] = a_[q * n_ + p] = 0.0;
    return true;
  }

  std::size_t n_;
  std::vector<double> a_, vectors_;
};

/// 1 or -1: what makes the first large element positive.
double sign_of(std::span<const double> vector) {
  double largest = 0.0;
  for (const double element : vector) largest = std::max(largest, std::abs(element));
  const auto first = std::ranges::find_if(vector, [&](double element) { return std::abs(element) >= 0.5 * largest; });
  return *first < 0.0 ? -1.0 : 1.0;
}

}  // namespace

SymmetricEigen symmetric_eigen(std::span<const double> matrix, std::int64_t n) {
  check_symmetric(matrix, n);
  Rotations rotations(matrix, n);
  constexpr int kMostSweeps = 60;  // ten are usual
  for (int sweep = 0; sweep < kMostSweeps && rotations.sweep(); ++sweep) {
  }
  std::vector<std::size_t> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order,
                           [&](std::size_t a, std::size_t b) { return rotations.value(a) > rotations.value(b); });
  SymmetricEigen result;
  for (const std::size_t i : order) {
    const std::span<const double> vector = rotations.vector(i);
    const double sign = sign_of(vector);
    result.values.push_back(rotations.value(i));
    for (const double element : vector) result.vectors.push_back(sign * element);
  }
  return result;
}

}  // namespace tandem::layers
