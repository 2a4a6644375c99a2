// Newton-Schulz: by plain loops, by singular values, in every dtype.
#include "tandem/optim/newton_schulz.h"

#include "tandem/autograd/functions/cast.h"
#include "tandem/core/random.h"
#include "tests/optim/matrix_support.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"

#include <array>
#include <limits>

using namespace tandem;
using namespace tandem::test;
using optim::newton_schulz;
using optim::NewtonSchulzOptions;

namespace {

/// Normal numbers.
Matrix random_matrix(std::int64_t rows, std::int64_t columns, std::uint32_t step) {
  const RandomKey key{.seed = 3, .stream = RandomStream::test, .step = step};
  Matrix m = zeros(rows, columns);
  for (std::size_t i = 0; i < m.values.size(); ++i) m.values[i] = key.normal(i);
  return m;
}

/// Orthogonal: two reflections.
Matrix orthogonal(std::int64_t size, std::uint32_t step) {
  Matrix result = zeros(size, size);
  for (std::int64_t i = 0; i < size; ++i) result.at(i, i) = 1.0;
  for (const std::uint32_t each : {2 * step, 2 * step + 1}) {
    const Matrix v = random_matrix(size, 1, 100 + each);
    const double squares = norm_of(v.values) * norm_of(v.values);
    result = combined(1.0, result, -2.0 / squares, product(product(v, transposed(v)), result));
  }
  return result;
}

/// sum of s_i u_i v_i^T: rows u_i and v_i.
Matrix of_singular_values(const std::vector<double>& s, const Matrix& u, const Matrix& v) {
  Matrix result = zeros(u.columns, v.columns);
  for (std::size_t k = 0; k < s.size(); ++k)
    for (std::int64_t i = 0; i < u.columns; ++i)
      for (std::int64_t j = 0; j < v.columns; ++j)
        result.at(i, j) += s[k] * u.at(static_cast<std::int64_t>(k), i) * v.at(static_cast<std::int64_t>(k), j);
  return result;
}

Tensor tensor_of(const Matrix& m, DType dtype = DType::f64) {
  return autograd::cast(Tensor::from(m.values, {m.rows, m.columns}), dtype);
}

Matrix matrix_of(const Tensor& t) { return {t.size(-2), t.size(-1), t.to_vector<double>()}; }

double distance(const Matrix& a, const Matrix& b) { return norm_of(combined(1.0, a, -1.0, b).values); }

}  // namespace

TEST_CASE("Newton-Schulz follows plain loops, for wide, tall and square matrices") {
  const auto [rows, columns] =
      GENERATE(std::pair<std::int64_t, std::int64_t>{3, 45}, std::pair<std::int64_t, std::int64_t>{20, 18},
               std::pair<std::int64_t, std::int64_t>{45, 4}, std::pair<std::int64_t, std::int64_t>{6, 6},
               std::pair<std::int64_t, std::int64_t>{1, 7}, std::pair<std::int64_t, std::int64_t>{7, 1},
               std::pair<std::int64_t, std::int64_t>{64, 216});
  const std::int64_t steps = GENERATE(1, 3, 5);
  CAPTURE(rows, columns, steps);
  const Matrix m = random_matrix(rows, columns, 1);
  const NewtonSchulzOptions options{.steps = steps};
  const Matrix expected = plain_newton_schulz(m, options);
  CHECK(distance(matrix_of(newton_schulz(tensor_of(m), options)), expected) <=
        newton_schulz_bound(rows, columns, steps, 0x1p-53));
  if (std::min(rows, columns) > 6) return;  // the bound of f32 says little then
  const Tensor single = newton_schulz(tensor_of(m, DType::f32), options);
  CHECK(single.dtype() == DType::f32);
  CHECK(distance(matrix_of(single), expected) <= newton_schulz_bound(rows, columns, steps, 0x1p-24, 0x1p-24));
}

TEST_CASE("Newton-Schulz keeps singular vectors and takes singular values through its polynomial") {
  const bool is_tall = GENERATE(false, true);
  const std::vector<double> s{0.9, 0.4, 0.15, 0.08, 0.01, 1e-4, 0.0};
  const auto rank = static_cast<std::int64_t>(s.size());
  const Matrix u = orthogonal(rank, 1), v = orthogonal(11, 2);
  const NewtonSchulzOptions options{.steps = 4, .eps = 0.25};
  const double scale = 1.0 / (norm_of(s) + options.eps);
  std::vector<double> after;
  for (const double value : s) after.push_back(plain_newton_schulz(value * scale, options));
  const auto oriented = [&](const Matrix& m) { return is_tall ? transposed(m) : m; };
  const Matrix m = oriented(of_singular_values(s, u, v)), expected = oriented(of_singular_values(after, u, v));
  // The matrices themselves are sums of 7 terms of size 1.
  CHECK(distance(matrix_of(newton_schulz(tensor_of(m), options)), expected) <=
        newton_schulz_bound(rank, 11, options.steps, 0x1p-53, 32 * 0x1p-53));
}

TEST_CASE("after five steps of Newton-Schulz singular values are between 0.5 and 1.5, as published, also in bf16") {
  const auto [rows, columns] =
      GENERATE(std::pair<std::int64_t, std::int64_t>{16, 40}, std::pair<std::int64_t, std::int64_t>{40, 16});
  const DType dtype = GENERATE(DType::f64, DType::f32, DType::f16, DType::bf16);
  const bool products_in_bf16 = GENERATE(false, true);
  CAPTURE(rows, columns, name_of(dtype), products_in_bf16);
  const Matrix m = random_matrix(rows, columns, 2);
  const std::vector<double> before = singular_values(m);
  REQUIRE(before.back() > 0.01 * norm_of(m.values));
  REQUIRE(before.front() > 3.0 * before.back());
  NewtonSchulzOptions options{.steps = 5};
  if (products_in_bf16) options.dtype = DType::bf16;
  const Tensor x = newton_schulz(tensor_of(m, dtype), options);
  CHECK(x.dtype() == dtype);
  const std::vector<double> values = singular_values(matrix_of(x));
  CHECK(values.front() < 1.5);
  CHECK(values.back() > 0.5);
  // Three steps in place of five leave small ones small.
  options.steps = 1;
  CHECK(singular_values(matrix_of(newton_schulz(tensor_of(m, dtype), options))).back() < 0.5);
}

TEST_CASE("a batch of matrices is done as each of them, with any strides") {
  const Matrix a = random_matrix(5, 9, 3), b = random_matrix(5, 9, 4);
  std::vector<double> both = a.values;
  both.insert(both.end(), b.values.begin(), b.values.end());
  const Tensor batch = Tensor::from(both, {2, 5, 9}), x = newton_schulz(batch);
  const Tensor given = batch.clone();
  CHECK(x.shape() == Shape{2, 5, 9});
  CHECK(x.select(0, 0).to_vector<double>() == newton_schulz(tensor_of(a)).to_vector<double>());
  CHECK(x.select(0, 1).to_vector<double>() == newton_schulz(tensor_of(b)).to_vector<double>());
  CHECK(batch.to_vector<double>() == both);  // which it leaves as they are
  const Tensor turned = newton_schulz(given.transpose(1, 2));
  CHECK(turned.shape() == Shape{2, 9, 5});
  const double bound = 2.0 * newton_schulz_bound(5, 9, 3, 0x1p-53);
  for (const std::int64_t i : {0, 1})
    CHECK(distance(transposed(matrix_of(turned.select(0, i))), matrix_of(x.select(0, i))) <= bound);
}

TEST_CASE("Newton-Schulz leaves zeros zeros, and is blind to the scale of a matrix far above eps") {
  CHECK(newton_schulz(Tensor::zeros({2, 3, 4})).to_vector<double>() == std::vector<double>(24, 0.0));
  CHECK(newton_schulz(Tensor::zeros({4, 3}), {.dtype = DType::bf16}).to_vector<double>() ==
        std::vector<double>(12, 0.0));
  const Matrix m = random_matrix(6, 10, 5);
  const NewtonSchulzOptions options{.eps = 1e-30};
  CHECK(newton_schulz(tensor_of(combined(0x1p20, m, 0.0, m)), options).to_vector<double>() ==
        newton_schulz(tensor_of(m), options).to_vector<double>());
}

TEST_CASE("Newton-Schulz refuses what it has no use for") {
  const Tensor m = Tensor::zeros({2, 3});
  const auto refused = [&](const NewtonSchulzOptions& options) { return error_of([&] { newton_schulz(m, options); }); };
  CHECK(refused({.steps = 0}) == "newton_schulz: steps of Newton-Schulz must be 1 or more, got 0");
  CHECK(refused({.coefficients = {1.0, HUGE_VAL, 0.5}}) ==
        "newton_schulz: coefficients of Newton-Schulz must be from -1000 to 1000, got 1, inf, 0.5");
  CHECK(refused({.eps = 0.0}) == "newton_schulz: eps of Newton-Schulz must be a finite number above 0, got 0");
  CHECK(refused({.eps = std::numeric_limits<double>::quiet_NaN()}) ==
        "newton_schulz: eps of Newton-Schulz must be a finite number above 0, got nan");
  CHECK(refused({.dtype = DType::i64}) ==
        "newton_schulz: the dtype of Newton-Schulz must be f64, f32, f16 or bf16, got i64");
  CHECK(error_of([] { newton_schulz(Tensor::zeros({3})); }) ==
        "newton_schulz: needs matrices [..., R, C] of a floating dtype, got f32[3]");
  CHECK(error_of([] { newton_schulz(Tensor::zeros({3, 3}, {.dtype = DType::i64})); }) ==
        "newton_schulz: needs matrices [..., R, C] of a floating dtype, got i64[3, 3]");
  CHECK(error_of([] { newton_schulz(Tensor()); }) ==
        "newton_schulz: needs matrices [..., R, C] of a floating dtype, got undefined tensor");
}
