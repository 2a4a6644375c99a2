// Element-wise functions of a user's own on the CPU, operators, and what op-table cases do not ask of pointwise
// functions.
#include "tandem/autograd/elementwise.h"
#include "tandem/autograd/functions.h"
#include "tandem/autograd/gradcheck.h"
#include "tandem/autograd/variable.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"

#include <cmath>
#include <limits>

using namespace tandem;
using namespace tandem::test;

namespace {

Tensor sine(const Tensor& x) {
  return autograd::elementwise(
      "sine", x, [](auto v) { return std::sin(v); }, [](auto v, auto g) { return g * std::cos(v); });
}

constexpr double kInfinity = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();

/// The gradient of each element for a gradient of 1, in every floating dtype, compared with what is expected: NaN with
/// NaN.
void check_slopes(const std::function<Tensor(const Tensor&)>& function, const std::vector<double>& at,
                  const std::vector<double>& expected) {
  for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    const auto size = static_cast<std::int64_t>(at.size());
    const Tensor x = autograd::set_requires_grad(autograd::cast(Tensor::from(at, {size}), dtype));
    const Tensor y = function(x);
    autograd::backward(y, Tensor::full({size}, 1.0, {.dtype = y.dtype()}));
    const std::vector<double> slopes = autograd::grad(x).to_vector<double>();
    for (std::size_t i = 0; i < at.size(); ++i) {
      INFO(name_of(dtype) << ", at " << at[i] << ": " << slopes[i] << ", expected " << expected[i]);
      CHECK((std::isnan(expected[i]) ? std::isnan(slopes[i]) : slopes[i] == expected[i]));
    }
  }
}

void check_values(const std::function<Tensor(const Tensor&)>& function, const std::vector<double>& at,
                  const std::vector<double>& expected) {
  for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    const Tensor x = autograd::cast(Tensor::from(at, {static_cast<std::int64_t>(at.size())}), dtype);
    const std::vector<double> values = function(x).to_vector<double>();
    for (std::size_t i = 0; i < at.size(); ++i) {
      INFO(name_of(dtype) << ", at " << at[i] << ": " << values[i] << ", expected " << expected[i]);
      CHECK((std::isnan(expected[i]) ? std::isnan(values[i]) : values[i] == expected[i]));
      if (expected[i] == 0.0) CHECK(std::signbit(values[i]) == std::signbit(expected[i]));
    }
  }
}

}  // namespace

TEST_CASE("an element-wise function of two lambdas computes in every dtype and stride, and passes gradcheck") {
  const Tensor x = Tensor::from<double>({-2, -1, -0.5, 0, 0.5, 3}, {2, 3});
  const auto report = autograd::gradcheck([](const std::vector<Tensor>& in) { return sine(in[0]); },
                                          {autograd::set_requires_grad(x.clone())});
  CHECK(report.message == "");
  for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    const Tensor typed = autograd::cast(x, dtype);
    for (const Tensor& in : {typed, typed.transpose(0, 1), typed.narrow(1, 0, 2, 2)}) {
      const Tensor y = sine(in);
      CHECK(y.dtype() == dtype);
      const std::vector<double> from = in.to_vector<double>(), values = y.to_vector<double>();
      for (std::size_t i = 0; i < from.size(); ++i) CHECK(std::abs(values[i] - std::sin(from[i])) <= 0x1p-8);
    }
  }
  CHECK(sine(Tensor::zeros({0, 3})).shape() == Shape{0, 3});
}

TEST_CASE("an element-wise function of two lambdas names itself in errors") {
  CHECK_THAT(error_of([] { sine(Tensor()); }), ContainsText("sine: needs a defined tensor"));
  CHECK_THAT(error_of([] { sine(Tensor::zeros({2}, {.dtype = DType::i64})); }),
             ContainsText("sine: needs a floating dtype (f64, f32, f16 or bf16), got i64[2]"));
}

TEST_CASE("operators of tensors and numbers are found without a using, and differentiate") {
  const Tensor x = autograd::set_requires_grad(Tensor::from<double>({1, 2, 4}, {3}));
  const Tensor row = Tensor::from<double>({10, 20, 30}, {3}), column = Tensor::from<double>({1, 2}, {2, 1});
  CHECK((x + row).to_vector<double>() == std::vector<double>{11, 22, 34});
  CHECK((x - row).to_vector<double>() == std::vector<double>{-9, -18, -26});
  CHECK((x * row).to_vector<double>() == std::vector<double>{10, 40, 120});
  CHECK((row / x).to_vector<double>() == std::vector<double>{10, 10, 7.5});
  CHECK((column * row).to_vector<double>() == std::vector<double>{10, 20, 30, 20, 40, 60});
  CHECK((x + 1).to_vector<double>() == (1 + x).to_vector<double>());
  CHECK((x - 1).to_vector<double>() == (-(1 - x)).to_vector<double>());
  CHECK((2 * x).to_vector<double>() == (x * 2.0f).to_vector<double>());
  CHECK((x / 2).to_vector<double>() == std::vector<double>{0.5, 1, 2});
  CHECK((2 / x).to_vector<double>() == std::vector<double>{2, 1, 0.5});
  autograd::backward(autograd::sum(3 * x * x - x / 2 + 1 / x - (-x)));
  CHECK(autograd::grad(x).to_vector<double>() == std::vector<double>{5.5, 12.25, 24.4375});
  CHECK_THAT(error_of([&] { x + Tensor::zeros({3}); }), ContainsText("add: f64[3] on cpu and f32[3] on cpu must have"));
  CHECK_THAT(error_of([&] { x / Tensor::zeros({4}, {.dtype = DType::f64}); }),
             ContainsText("div: shapes f64[3] and f64[4] do not broadcast"));
}

TEST_CASE("exp, log, pow, reciprocals and a number over a tensor give f32 for halves, other functions the dtype") {
  using namespace autograd;
  for (const DType dtype : {DType::f16, DType::bf16}) {
    const Tensor x = Tensor::full({2}, 12.0, {.dtype = dtype});
    for (const Tensor& y : {exp(x), expm1(x), log(x), log1p(x), softplus(x), pow(x, 2), pow(x, 1.5), pow(x, x),
                            pow(1.5, x), reciprocal(x), rsqrt(x), 2 / x})
      CHECK(y.dtype() == DType::f32);
    for (const Tensor& y :
         {sqrt(x), abs(x), clamp(x, 0, 1), clamp_min(x, 0), clamp_max(x, 1), maximum(x, 0), minimum(1, x), neg(x),
          tanh(x), sigmoid(x), leaky_relu(x), hardswish(x), x / 2, x / x, x - x, 2 - x, maximum(x, x), minimum(x, x),
          where(Tensor::zeros({2}, {.dtype = DType::u8}), x, x)})
      CHECK(y.dtype() == dtype);
    CHECK(std::abs(exp(x).to_vector<double>()[0] / std::exp(12.0) - 1.0) < 1e-6);  // beyond the largest f16
  }
}

TEST_CASE("pointwise functions give infinities, zeros and NaN what C's functions give") {
  using namespace autograd;
  check_values(autograd::exp, {-kInfinity, kInfinity, kNan, 0.0, -0.0}, {0.0, kInfinity, kNan, 1.0, 1.0});
  check_values(autograd::log, {0.0, -0.0, -1.0, 1.0, kInfinity, kNan},
               {-kInfinity, -kInfinity, kNan, 0.0, kInfinity, kNan});
  check_values(autograd::expm1, {-kInfinity, kInfinity, kNan, 0.0, -0.0, -100.0},
               {-1.0, kInfinity, kNan, 0.0, -0.0, -1.0});
  check_values(autograd::log1p, {0.0, -0.0, -1.0, -2.0, kInfinity, -kInfinity, kNan},
               {0.0, -0.0, -kInfinity, kNan, kInfinity, kNan, kNan});
  check_values([](const Tensor& x) { return softplus(x); }, {-kInfinity, kInfinity, kNan, 100.0, -200.0 * 5},
               {0.0, kInfinity, kNan, 100.0, 0.0});
  check_values([](const Tensor& x) { return softplus(x, 1e37); }, {1024.0, -1024.0, 2.0, kInfinity, kNan},
               {1024.0, 0.0, 2.0, kInfinity, kNan});
  check_values([](const Tensor& x) { return softplus(x, -1e37); }, {-1024.0, 1024.0, -kInfinity},
               {-1024.0, 0.0, -kInfinity});
  CHECK_THAT(
      error_of([] { softplus(Tensor::zeros({2}), 1e39); }),
      ContainsText("softplus: beta must be a finite number other than 0 in the type that f32[2] is computed in"));
  CHECK_THAT(error_of([] { softplus(Tensor::zeros({2}), 0.0); }), ContainsText("got 0"));
  check_values([](const Tensor& x) { return pow(2, x); }, {-kInfinity, kInfinity, kNan, 0.0, 3.0},
               {0.0, kInfinity, kNan, 1.0, 8.0});
  check_values([](const Tensor& x) { return maximum(x, 1); }, {kNan, 0.0, 2.0}, {kNan, 1.0, 2.0});
  check_values([](const Tensor& x) { return minimum(1, x); }, {kNan, 0.0, 2.0}, {kNan, 0.0, 1.0});
  check_values([](const Tensor& x) { return clamp_min(x, 1); }, {kNan, -kInfinity, 2.0}, {kNan, 1.0, 2.0});
  check_values([](const Tensor& x) { return clamp_max(x, 1); }, {kNan, -kInfinity, 2.0}, {kNan, -kInfinity, 1.0});
  check_values(autograd::sqrt, {0.0, -0.0, -1.0, kInfinity, kNan}, {0.0, -0.0, kNan, kInfinity, kNan});
  check_values(autograd::rsqrt, {0.0, -1.0, kInfinity, kNan}, {kInfinity, kNan, 0.0, kNan});
  check_values(autograd::reciprocal, {0.0, -0.0, kInfinity, -kInfinity, kNan},
               {kInfinity, -kInfinity, 0.0, -0.0, kNan});
  check_values(autograd::abs, {-0.0, -kInfinity, kNan}, {0.0, kInfinity, kNan});
  check_values(autograd::neg, {0.0, -0.0, kInfinity, kNan}, {-0.0, 0.0, -kInfinity, kNan});
  check_values(autograd::tanh, {-kInfinity, kInfinity, kNan, 0.0, -0.0}, {-1.0, 1.0, kNan, 0.0, -0.0});
  check_values(autograd::sigmoid, {-kInfinity, kInfinity, kNan, 0.0}, {0.0, 1.0, kNan, 0.5});
  check_values([](const Tensor& x) { return clamp(x, -1, 2); }, {-kInfinity, kInfinity, kNan, 0.0, 5.0},
               {-1.0, 2.0, kNan, 0.0, 2.0});
  check_values([](const Tensor& x) { return clamp(x, 2, -1); }, {-5.0, 0.0, 5.0}, {-1.0, -1.0, -1.0});
  check_values([](const Tensor& x) { return leaky_relu(x, 0.5); }, {-kInfinity, kInfinity, kNan, -0.0, 0.0, -2.0},
               {-kInfinity, kInfinity, kNan, -0.0, 0.0, -1.0});
  check_values(autograd::hardswish, {-3.0, -100.0, 3.0, kInfinity, kNan}, {-0.0, -0.0, 3.0, kInfinity, kNan});
  check_values([](const Tensor& x) { return pow(x, 0); }, {0.0, kNan, kInfinity, -2.0}, {1.0, 1.0, 1.0, 1.0});
  check_values([](const Tensor& x) { return pow(x, 3); }, {0.0, -0.0, -2.0, -kInfinity, kNan},
               {0.0, -0.0, -8.0, -kInfinity, kNan});
  check_values([](const Tensor& x) { return pow(x, -3); }, {0.0, -0.0, -2.0, -kInfinity, kInfinity},
               {kInfinity, -kInfinity, -0.125, -0.0, 0.0});
  check_values([](const Tensor& x) { return pow(x, 1.5); }, {-4.0, 4.0, -0.0, -kInfinity, 1.0},
               {kNan, 8.0, 0.0, kInfinity, 1.0});
  const auto with_nan = [](auto function) {
    return [function](const Tensor& x) { return function(x, Tensor::full({}, 1.0, x.options())); };
  };
  const auto greater = [](const Tensor& a, const Tensor& b) { return maximum(a, b); };
  const auto less = [](const Tensor& a, const Tensor& b) { return minimum(a, b); };
  check_values(with_nan(greater), {kNan, 0.0, 2.0}, {kNan, 1.0, 2.0});
  check_values(with_nan(less), {kNan, 0.0, 2.0}, {kNan, 0.0, 1.0});
}

TEST_CASE("gradients at kinks, ties and ends are PyTorch's") {
  using namespace autograd;
  check_slopes(autograd::abs, {-2.0, 0.0, -0.0, 2.0}, {-1.0, 0.0, 0.0, 1.0});
  check_slopes(autograd::sqrt, {0.0, 4.0}, {kInfinity, 0.25});
  check_slopes(autograd::log, {0.0, 4.0}, {kInfinity, 0.25});
  check_slopes([](const Tensor& x) { return clamp(x, -1, 2); }, {-1.5, -1.0, 0.0, 2.0, 2.5, kNan},
               {0.0, 0.0, 1.0, 0.0, 0.0, 0.0});
  check_slopes([](const Tensor& x) { return clamp(x, 0, kInfinity); }, {-1.0, 0.0, 1.0, kInfinity},
               {0.0, 0.0, 1.0, 0.0});
  check_slopes(autograd::log1p, {-1.0, 0.0, 3.0}, {kInfinity, 1.0, 0.25});
  check_slopes(autograd::expm1, {-kInfinity, 0.0}, {0.0, 1.0});
  check_slopes([](const Tensor& x) { return softplus(x, 2); }, {-kInfinity, -1000.0, 0.0, 1000.0, kInfinity},
               {0.0, 0.0, 0.5, 1.0, 1.0});
  check_slopes([](const Tensor& x) { return maximum(x, 1); }, {0.0, 1.0, 2.0, kNan}, {0.0, 0.5, 1.0, 1.0});
  check_slopes([](const Tensor& x) { return minimum(1, x); }, {0.0, 1.0, 2.0, kNan}, {1.0, 0.5, 0.0, 1.0});
  check_slopes([](const Tensor& x) { return clamp_min(x, 1); }, {0.0, 1.0, 2.0, kInfinity, kNan},
               {0.0, 0.0, 1.0, 1.0, 0.0});
  check_slopes([](const Tensor& x) { return clamp_max(x, 1); }, {-kInfinity, 0.0, 1.0, 2.0}, {1.0, 1.0, 0.0, 0.0});
  check_slopes([](const Tensor& x) { return pow(0, x); }, {0.0, 1.0}, {0.0, 0.0});
  check_slopes([](const Tensor& x) { return leaky_relu(x, 0.5); }, {-1.0, 0.0, 1.0}, {0.5, 0.5, 1.0});
  check_slopes(autograd::hardswish, {-4.0, -3.0, 0.0, 3.0, 4.0}, {0.0, 0.0, 0.5, 1.0, 1.0});
  check_slopes([](const Tensor& x) { return pow(x, 0); }, {0.0, 2.0, kInfinity}, {0.0, 0.0, 0.0});
  check_slopes([](const Tensor& x) { return pow(x, 3); }, {0.0, -2.0}, {0.0, 12.0});
  const auto against_one = [](auto function, bool left) {
    return [function, left](const Tensor& x) {
      const Tensor one = Tensor::full({}, 1.0, x.options());
      return left ? function(x, one) : function(one, x);
    };
  };
  const auto power = [](const Tensor& a, const Tensor& b) { return pow(a, b); };
  const auto greater = [](const Tensor& a, const Tensor& b) { return maximum(a, b); };
  const auto less = [](const Tensor& a, const Tensor& b) { return minimum(a, b); };
  for (const bool left : {true, false}) {
    check_slopes(against_one(greater, left), {0.0, 1.0, 2.0, kNan}, {0.0, 0.5, 1.0, 1.0});
    check_slopes(against_one(less, left), {0.0, 1.0, 2.0, kNan}, {1.0, 0.5, 0.0, 1.0});
  }
  check_slopes(against_one(power, false), {0.0, 2.0}, {0.0, 0.0});
  const auto of_zero = [](const Tensor& x) { return pow(Tensor::zeros({}, x.options()), x); };
  check_slopes(of_zero, {0.0, 1.0, 2.0}, {0.0, 0.0, 0.0});
  const auto to_zero = [](const Tensor& x) { return pow(x, Tensor::zeros({}, x.options())); };
  check_slopes(to_zero, {0.0, 2.0, kInfinity}, {0.0, 0.0, 0.0});
}

TEST_CASE("backward keeps of pointwise functions only what it needs") {
  using namespace autograd;
  const Tensor x = set_requires_grad(Tensor::full({2}, 2.0)), b = Tensor::full({2}, 4.0);
  // What is not kept may change before backward.
  for (const auto& function : std::vector<std::function<Tensor(const Tensor&, const Tensor&)>>{
           [](const Tensor& a, const Tensor& c) { return sub(a, c); },
           [](const Tensor& a, const Tensor& c) { return sub(c, a); }}) {
    const Tensor other = b.clone(), y = function(x, other);
    other.fill(100.0);
    CHECK_NOTHROW(backward(y, Tensor::full({2}, 1.0)));
  }
  const Tensor divisor = set_requires_grad(Tensor::full({2}, 2.0)), constant = b.clone();
  const Tensor quotient = div(x, constant), other_quotient = div(constant, divisor);
  constant.fill(1.0);
  CHECK_THAT(error_of([&] { backward(quotient, Tensor::full({2}, 1.0)); }), ContainsText("changed in place"));
  CHECK_THAT(error_of([&] { backward(other_quotient, Tensor::full({2}, 1.0)); }), ContainsText("changed in place"));
  const Tensor numerator = b.clone(), by_constant = div(numerator, 2.0), shifted = add(x, 1.0);
  CHECK_NOTHROW(backward(shifted, Tensor::full({2}, 1.0)));
}
