// Eigenvalues and eigenvectors, by what defines them.
#include "tandem/core/random.h"
#include "tandem/layers/symmetric_eigen.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"

#include <cmath>
#include <limits>

using namespace tandem;
using namespace tandem::layers;
using namespace tandem::test;

namespace {

using Matrix = std::vector<double>;

double at(const Matrix& matrix, std::int64_t n, std::int64_t row, std::int64_t column) {
  return matrix[static_cast<std::size_t>(row * n + column)];
}

/// Sum of rows u_i scaled by values[i] times itself: a symmetric matrix, with these eigenvalues if the rows are at
/// right angles.
Matrix composed(const Matrix& vectors, const std::vector<double>& values) {
  const auto n = std::ssize(values);
  Matrix result(static_cast<std::size_t>(n * n), 0.0);
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t row = 0; row < n; ++row)
      for (std::int64_t column = 0; column < n; ++column)
        result[static_cast<std::size_t>(row * n + column)] +=
            values[static_cast<std::size_t>(i)] * at(vectors, n, i, row) * at(vectors, n, i, column);
  return result;
}

/// I - 2 u u^T with u of length 1: rows at right angles.
Matrix reflector(std::int64_t n) {
  std::vector<double> u(static_cast<std::size_t>(n));
  double squares = 0.0;
  for (std::int64_t i = 0; i < n; ++i) {
    u[static_cast<std::size_t>(i)] = 1.0 + 0.37 * static_cast<double>(i * i % 5);
    squares += u[static_cast<std::size_t>(i)] * u[static_cast<std::size_t>(i)];
  }
  Matrix result(static_cast<std::size_t>(n * n));
  for (std::int64_t row = 0; row < n; ++row)
    for (std::int64_t column = 0; column < n; ++column)
      result[static_cast<std::size_t>(row * n + column)] =
          (row == column ? 1.0 : 0.0) -
          2.0 * u[static_cast<std::size_t>(row)] * u[static_cast<std::size_t>(column)] / squares;
  return result;
}

Matrix random_symmetric(std::int64_t n, std::uint32_t step) {
  const RandomKey key{.seed = 3, .stream = RandomStream::test, .step = step};
  Matrix result(static_cast<std::size_t>(n * n));
  for (std::int64_t row = 0; row < n; ++row)
    for (std::int64_t column = 0; column <= row; ++column)
      result[static_cast<std::size_t>(row * n + column)] = result[static_cast<std::size_t>(column * n + row)] =
          static_cast<double>(key.normal(static_cast<std::uint64_t>(row * n + column)));
  return result;
}

/// An element is changed by 2 (n - 1) rotations in each of ten sweeps or fewer, of six roundings each.
double rounding(std::int64_t n) { return 120.0 * static_cast<double>(n) * 0x1p-53; }

/// A v = lambda v, rows of length 1 at right angles, values in order, signs as they are documented.
void check_eigen(const Matrix& matrix, std::int64_t n) {
  const SymmetricEigen eigen = symmetric_eigen(matrix, n);
  REQUIRE(std::ssize(eigen.values) == n);
  REQUIRE(std::ssize(eigen.vectors) == n * n);
  double squares = 0.0;
  for (const double element : matrix) squares += element * element;
  const double norm = std::sqrt(squares);
  for (std::int64_t i = 0; i < n; ++i) {
    INFO("eigenvalue " << i << " of " << n);
    const double lambda = eigen.values[static_cast<std::size_t>(i)];
    if (i > 0) CHECK(lambda <= eigen.values[static_cast<std::size_t>(i - 1)]);
    double largest = 0.0, first_large = 0.0;
    for (std::int64_t row = 0; row < n; ++row) {
      double product = 0.0;
      for (std::int64_t column = 0; column < n; ++column)
        product += at(matrix, n, row, column) * at(eigen.vectors, n, i, column);
      CHECK(std::abs(product - lambda * at(eigen.vectors, n, i, row)) <= rounding(n) * norm);
      largest = std::max(largest, std::abs(at(eigen.vectors, n, i, row)));
    }
    for (std::int64_t row = n; row-- > 0;) {
      const double element = at(eigen.vectors, n, i, row);
      if (std::abs(element) >= 0.5 * largest) first_large = element;
    }
    CHECK(first_large > 0.0);
    for (std::int64_t j = 0; j <= i; ++j) {
      double product = 0.0;
      for (std::int64_t k = 0; k < n; ++k) product += at(eigen.vectors, n, i, k) * at(eigen.vectors, n, j, k);
      CHECK(std::abs(product - (i == j ? 1.0 : 0.0)) <= rounding(n));
    }
  }
}

}  // namespace

TEST_CASE("eigenvalues and eigenvectors of two by two are known") {
  const SymmetricEigen eigen = symmetric_eigen(Matrix{2, 1, 1, 2}, 2);
  const double half = std::sqrt(0.5);
  const std::vector<double> expected{half, half, half, -half};
  CHECK(std::abs(eigen.values[0] - 3.0) <= rounding(2));
  CHECK(std::abs(eigen.values[1] - 1.0) <= rounding(2));
  for (std::size_t i = 0; i < 4; ++i) CHECK(std::abs(eigen.vectors[i] - expected[i]) <= rounding(2));
  CHECK(symmetric_eigen(Matrix{-5}, 1).values == std::vector<double>{-5});
  CHECK(symmetric_eigen(Matrix{-5}, 1).vectors == std::vector<double>{1});
  CHECK(symmetric_eigen(Matrix{}, 0).values.empty());
}

TEST_CASE("random symmetric matrices are taken apart, of any size") {
  for (const std::int64_t n : {2, 3, 5, 12, 27, 48}) {
    for (std::uint32_t step = 0; step < 4; ++step) check_eigen(random_symmetric(n, step), n);
  }
}

TEST_CASE("a diagonal matrix and one of zeros stay as they are") {
  const SymmetricEigen diagonal = symmetric_eigen(Matrix{2, 0, 0, 0, -1, 0, 0, 0, 7}, 3);
  CHECK(diagonal.values == std::vector<double>{7, 2, -1});
  CHECK(diagonal.vectors == std::vector<double>{0, 0, 1, 1, 0, 0, 0, 1, 0});
  const SymmetricEigen zero = symmetric_eigen(Matrix(16, 0.0), 4);
  CHECK(zero.values == std::vector<double>(4, 0.0));
  check_eigen(Matrix(16, 0.0), 4);
}

TEST_CASE("equal eigenvalues have vectors at right angles") {
  const std::vector<double> values{5, 2, 2, 2, 1, 0, 0, -3};
  const Matrix matrix = composed(reflector(8), values);
  check_eigen(matrix, 8);
  const SymmetricEigen eigen = symmetric_eigen(matrix, 8);
  for (std::size_t i = 0; i < 8; ++i) CHECK(std::abs(eigen.values[i] - values[i]) <= rounding(8) * 8.0);
  check_eigen(Matrix(36, 1.0), 6);  // of rank 1: five zeros
  CHECK(symmetric_eigen(matrix, 8).vectors == eigen.vectors);
}

TEST_CASE("small eigenvalues of a scaled matrix keep their digits") {
  // The determinant is 0.75e-16, exactly but for rounding, and the trace 1 + 1e-16.
  const SymmetricEigen eigen = symmetric_eigen(Matrix{1.0, 0.5e-8, 0.5e-8, 1e-16}, 2);
  CHECK(std::abs(eigen.values[1] - 0.75e-16) <= 1e-15 * 0.75e-16 + 1e-16 * 0.75e-16);
  check_eigen(Matrix{1.0, 0.5e-8, 0.5e-8, 1e-16}, 2);
}

TEST_CASE("matrices of very large and very small numbers are taken apart") {
  for (const double scale : {1e-300, 1e150, 1e300}) {
    const SymmetricEigen eigen = symmetric_eigen(Matrix{2 * scale, scale, scale, 2 * scale}, 2);
    CHECK(std::abs(eigen.values[0] / scale - 3.0) <= rounding(2));
    CHECK(std::abs(eigen.values[1] / scale - 1.0) <= rounding(2));
  }
}

TEST_CASE("what is no symmetric matrix of numbers is refused") {
  CHECK_THAT(error_of([] { symmetric_eigen(Matrix(5), 2); }),
             ContainsText("symmetric_eigen: 5 elements are no matrix of 2 x 2"));
  CHECK_THAT(error_of([] { symmetric_eigen(Matrix{1, 2, 3, 4}, 2); }),
             ContainsText("not symmetric: element (1, 0) is 3, (0, 1) is 2"));
  CHECK_THAT(error_of([] { symmetric_eigen(Matrix{std::nan("")}, 1); }), ContainsText("must be finite"));
  CHECK_THAT(error_of([] { symmetric_eigen(Matrix{std::numeric_limits<double>::infinity()}, 1); }),
             ContainsText("the matrix holds inf"));
}
