// Functions for vectors: error over fine grids and over all exponents, and the ends.
#include "tandem/kernels/activation/vector_math.h"

#include "tests/support/catch.h"

#include <bit>
#include <cmath>
#include <limits>

using namespace tandem::kernels::cpu;

namespace {

/// The distance of floats around a number.
double unit_in_last_place(double number) {
  int exponent = 0;
  std::frexp(number, &exponent);
  return std::ldexp(1.0, std::max(exponent, -125) - 24);
}

/// The error of `function` in units in the last place of `exact`, over every 4,099th float (all exponents and signs,
/// subnormals, infinities, NaN). Where the exact result rounds to 0, infinity or NaN, these and no others are right,
/// but for the largest float where infinity is due.
template <typename Function, typename Exact>
double worst_error(Function&& function, Exact&& exact) {
  double worst = 0.0;
  for (std::uint64_t bits = 0; bits <= 0xffffffffu; bits += 4099) {
    const float x = std::bit_cast<float>(static_cast<std::uint32_t>(bits)), actual = function(x);
    const double expected = exact(static_cast<double>(x));
    const float rounded = static_cast<float>(expected);
    if (std::isnan(rounded)) {
      if (!std::isnan(actual)) return std::numeric_limits<double>::infinity();
    } else if (std::isinf(rounded)) {
      if (std::abs(actual) < std::numeric_limits<float>::max() || std::signbit(actual) != std::signbit(rounded))
        return std::numeric_limits<double>::infinity();
    } else {
      const double error = std::abs(static_cast<double>(actual) - expected) / unit_in_last_place(expected);
      if (rounded == 0.0f && std::signbit(actual) != std::signbit(rounded)) return 1e9;
      if (!(error <= worst)) worst = std::isnan(error) ? std::numeric_limits<double>::infinity() : error;
    }
  }
  return worst;
}

constexpr float kInfinity = std::numeric_limits<float>::infinity();

}  // namespace

TEST_CASE("vector_exp is within 2e-7 of exp, relatively") {
  double worst = 0.0;
  for (int i = -870000; i <= 870000; ++i) {
    const float x = static_cast<float>(i) * 1e-4f;
    if (std::abs(x) > 87.0f) continue;
    const double exact = std::exp(static_cast<double>(x));
    worst = std::max(worst, std::abs(static_cast<double>(vector_exp(x)) - exact) / exact);
  }
  CHECK(worst < 2e-7);
  CHECK(vector_exp(0.0f) == 1.0f);
  CHECK(vector_exp(-1000.0f) == vector_exp(-87.0f));
  CHECK(std::isfinite(vector_exp(1000.0f)));
  CHECK(std::isnan(vector_exp(std::nanf(""))));
}

TEST_CASE("vector_erf is within 5e-7 of erf") {
  double worst = 0.0;
  for (int i = -600000; i <= 600000; ++i) {
    const float x = static_cast<float>(i) * 1e-5f;
    worst = std::max(worst, std::abs(static_cast<double>(vector_erf(x)) - std::erf(static_cast<double>(x))));
  }
  CHECK(worst < 5e-7);
  CHECK(vector_erf(0.0f) == 0.0f);
  CHECK(vector_erf(100.0f) == -vector_erf(-100.0f));
  CHECK(std::isnan(vector_erf(std::nanf(""))));
}

TEST_CASE("vector_exp_to_ends is within 1.5 units in the last place of exp for all floats") {
  CHECK(worst_error(vector_exp_to_ends, [](double x) { return std::exp(x); }) < 1.5);
  CHECK(vector_exp_to_ends(0.0f) == 1.0f);
  CHECK(vector_exp_to_ends(-kInfinity) == 0.0f);
  CHECK(vector_exp_to_ends(kInfinity) == kInfinity);
  CHECK(vector_exp_to_ends(-100.0f) > 0.0f);  // subnormal
  CHECK(std::isnan(vector_exp_to_ends(std::nanf(""))));
}

TEST_CASE("vector_exp_of_negative is within 1.5 units in the last place of exp for all floats up to 40") {
  const auto within = [](float x) { return x <= 40.0f; };
  CHECK(worst_error([&](float x) { return within(x) ? vector_exp_of_negative(x) : 0.0f; },
                    [&](double x) { return within(static_cast<float>(x)) ? std::exp(x) : 0.0; }) < 1.5);
  CHECK(vector_exp_of_negative(0.0f) == 1.0f);
  CHECK(vector_exp_of_negative(-kInfinity) == 0.0f);
  CHECK(vector_exp_of_negative(-103.98f) == 0.0f);
  CHECK(vector_exp_of_negative(-103.9f) == 0x1p-149f);
  CHECK(std::isnan(vector_exp_of_negative(std::nanf(""))));
}

TEST_CASE("vector_log is within 1.5 units in the last place of log for all floats") {
  CHECK(worst_error(vector_log, [](double x) { return std::log(x); }) < 1.5);
  CHECK(vector_log(1.0f) == 0.0f);
  CHECK(vector_log(0.0f) == -kInfinity);
  CHECK(vector_log(-0.0f) == -kInfinity);
  CHECK(vector_log(kInfinity) == kInfinity);
  CHECK(std::isnan(vector_log(-1e-40f)));
}

TEST_CASE("vector_log1p is within 3 units in the last place of log1p for all finite floats from 0 on") {
  constexpr float kLargest = std::numeric_limits<float>::max();
  const auto within = [](float x) { return x >= 0.0f && x <= kLargest; };
  CHECK(worst_error([&](float x) { return within(x) ? vector_log1p(x) : 0.0f; },
                    [&](double x) { return within(static_cast<float>(x)) ? std::log1p(x) : 0.0; }) < 3.0);
  CHECK(vector_log1p(0.0f) == 0.0f);
  CHECK(vector_log1p(1e-10f) == 1e-10f);  // where 1 + x is 1
  CHECK(std::isnan(vector_log1p(std::nanf(""))));
}

TEST_CASE("vector_log1p_to_ends is within 3 units in the last place of log1p for all floats") {
  CHECK(worst_error(vector_log1p_to_ends, [](double x) { return std::log1p(x); }) < 3.0);
  CHECK(std::signbit(vector_log1p_to_ends(-0.0f)));
  CHECK(vector_log1p_to_ends(-1.0f) == -kInfinity);
  CHECK(vector_log1p_to_ends(kInfinity) == kInfinity);
  CHECK(std::isnan(vector_log1p_to_ends(-1.5f)));
  CHECK(std::isnan(vector_log1p_to_ends(-kInfinity)));
}

TEST_CASE("vector_expm1 is within 4 units in the last place of expm1 for all floats") {
  CHECK(worst_error(vector_expm1, [](double x) { return std::expm1(x); }) < 4.0);
  CHECK(std::signbit(vector_expm1(-0.0f)));
  CHECK(vector_expm1(-kInfinity) == -1.0f);
  CHECK(vector_expm1(kInfinity) == kInfinity);
}

TEST_CASE("vector_log1p_exp is within 4 units in the last place of log(1 + exp(x)) from -87 to 0, and 0 below") {
  const auto within = [](float x) { return x >= -87.0f && x <= 0.0f; };
  CHECK(worst_error([&](float x) { return within(x) ? vector_log1p_exp(x) : 0.0f; },
                    [&](double x) { return within(static_cast<float>(x)) ? std::log1p(std::exp(x)) : 0.0; }) < 4.0);
  CHECK(vector_log1p_exp(-87.5f) == 0.0f);
  CHECK(vector_log1p_exp(-kInfinity) == 0.0f);
  CHECK(std::isnan(vector_log1p_exp(std::nanf(""))));
}

TEST_CASE("vector_tanh is within 3 units in the last place of tanh for all floats") {
  CHECK(worst_error(vector_tanh, [](double x) { return std::tanh(x); }) < 3.0);
  CHECK(vector_tanh(kInfinity) == 1.0f);
  CHECK(vector_tanh(-kInfinity) == -1.0f);
  CHECK(std::signbit(vector_tanh(-0.0f)));
}

TEST_CASE("vector_pow is within 0.6 units in the last place of pow for all bases, and for all exponents") {
  for (const float exponent : {0.0f, -0.0f, 1.0f, 2.0f, 3.0f, -1.0f, 0.5f, -0.5f, 1.7f, -2.3f, 10.0f, 1e-3f, 1e9f,
                               kInfinity, -kInfinity, std::nanf("")}) {
    INFO("exponent " << exponent);
    CHECK(worst_error([&](float x) { return vector_pow(x, exponent); },
                      [&](double x) { return std::pow(x, static_cast<double>(exponent)); }) < 0.6);
  }
  for (const float base :
       {0.0f, -0.0f, 1.0f, -1.0f, 1.7f, -1.7f, 0.3f, -2.0f, 1e-40f, 3e38f, kInfinity, -kInfinity, std::nanf("")}) {
    INFO("base " << base);
    CHECK(worst_error([&](float x) { return vector_pow(base, x); },
                      [&](double x) { return std::pow(static_cast<double>(base), x); }) < 0.6);
  }
}

TEST_CASE("vector_pow takes a negative base to whole powers, odd and even ones") {
  for (int power = -9; power <= 9; ++power) {
    INFO("power " << power);
    CHECK(vector_pow(-1.5f, static_cast<float>(power)) == static_cast<float>(std::pow(-1.5, power)));
    CHECK(vector_pow(-0.0f, static_cast<float>(power)) == std::pow(-0.0f, static_cast<float>(power)));
  }
  CHECK(vector_pow(-1.0f, 16777215.0f) == -1.0f);  // the largest odd float
  CHECK(vector_pow(-1.0f, 16777216.0f) == 1.0f);
  CHECK(std::isnan(vector_pow(-1.0f, 4194303.5f)));
  CHECK(std::isnan(vector_pow(-1.0f, 0.5f)));
}
