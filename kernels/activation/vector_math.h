// exp, expm1, log, log1p, tanh, pow and erf in f32 without branches or library calls, so that loops over them
// vectorise.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace tandem::kernels::cpu {

namespace detail {

constexpr float kRoundExponent = 0x1.8p23f;  // adding it leaves the nearest integer in the low mantissa bits

/// exp(x) = mantissa * 2^exponent for |x| < 104, with the exponent in the low mantissa bits of `shifted`.
struct SplitExp {
  float mantissa, shifted;
};

/// (exp(r) - 1 - r) / r^2 for |r| <= ln 2 / 2: the polynomial of Cephes' expf (Moshier).
inline float exp_remainder(float r) {
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  return p;
}

/// Cody-Waite reduction by ln 2, and that polynomial.
inline SplitExp split_exp(float x) {
  const float shifted = x * 1.44269504088896341f + kRoundExponent;
  const float exponent = shifted - kRoundExponent;
  float r = x - exponent * 0.693359375f;
  r = r - exponent * -2.12194440e-4f;
  return {exp_remainder(r) * r * r + r + 1.0f, shifted};
}

}  // namespace detail

/// exp(x), relative error below 2e-7 for |x| <= 87; beyond it stays at the value there, so that neither it
/// nor its inverse is subnormal (hundreds of times slower). NaN stays NaN.
inline float vector_exp(float x) {
  x = x < -87.0f ? -87.0f : x;
  x = x > 87.0f ? 87.0f : x;
  const auto [p, shifted] = detail::split_exp(x);
  const std::uint32_t biased = std::bit_cast<std::uint32_t>(shifted) + 127u;
  return p * std::bit_cast<float>(biased << 23);
}

/// erf(x), absolute error below 5e-7, with or without fused multiply-adds: x times a rational function of x^2 (minimax
/// for |x| <= 4, the coefficients in use in Eigen and XLA); beyond, erf is 1 to within f32. NaN stays NaN.
inline float vector_erf(float x) {
  x = x < -4.0f ? -4.0f : x;
  x = x > 4.0f ? 4.0f : x;
  const float x2 = x * x;
  float p = -2.72614225801306e-10f;
  p = p * x2 + 2.77068142495902e-08f;
  p = p * x2 + -2.10102402082508e-06f;
  p = p * x2 + -5.69250639462346e-05f;
  p = p * x2 + -7.34990630326855e-04f;
  p = p * x2 + -2.95459980854025e-03f;
  p = p * x2 + -1.60960333262415e-02f;
  float q = -1.45660718464996e-05f;
  q = q * x2 + -2.13374055278905e-04f;
  q = q * x2 + -1.68282697438203e-03f;
  q = q * x2 + -7.37332916720468e-03f;
  q = q * x2 + -1.42647390514189e-02f;
  return x * p / q;
}

namespace detail {

/// `condition ? yes : no` by masks: where compilers see a choice, some jump over what is not chosen, and then have no
/// vectors for the loop.
inline float select(bool condition, float yes, float no) {
  const std::int32_t mask = -static_cast<std::int32_t>(condition);
  return std::bit_cast<float>((std::bit_cast<std::int32_t>(yes) & mask) | (std::bit_cast<std::int32_t>(no) & ~mask));
}
inline double select(bool condition, double yes, double no) {
  const std::int64_t mask = -static_cast<std::int64_t>(condition);
  return std::bit_cast<double>((std::bit_cast<std::int64_t>(yes) & mask) | (std::bit_cast<std::int64_t>(no) & ~mask));
}

}  // namespace detail

/// exp(x), within 1.5 units in the last place, infinite above 88.7, with subnormal results and 0 below -87.3. NaN stays
/// NaN. As vector_exp(), but for the ends.
inline float vector_exp_to_ends(float x) {
  constexpr float kLowest = -103.97f;  // below, the result rounds to 0; computing it would be slow
  const float above = x < kLowest ? 0.0f : x;
  const float bounded = above > 89.0f ? 89.0f : above;
  const auto [p, shifted] = detail::split_exp(bounded);
  // 2^exponent as two factors, because its own exponent may be beyond those of normal numbers.
  const std::int32_t power = std::bit_cast<std::int32_t>(shifted) - std::bit_cast<std::int32_t>(detail::kRoundExponent);
  const std::int32_t half = power >> 1;
  const float result = p * std::bit_cast<float>((half + 127) << 23) * std::bit_cast<float>((power - half + 127) << 23);
  return x < kLowest ? 0.0f : result;
}

/// exp(x) for x <= 40, within 1.5 units in the last place, with subnormal results and 0. NaN stays NaN. Takes
/// two thirds of the time of vector_exp_to_ends() (AVX-512, GCC 12): 2^(exponent + 64) is a normal number for all of
/// these, and the last factor rounds once.
inline float vector_exp_of_negative(float x) {
  constexpr float kLowest = -104.0f;  // its result rounds to 0
  const auto [p, shifted] = detail::split_exp(x < kLowest ? kLowest : x);
  const std::uint32_t biased = std::bit_cast<std::uint32_t>(shifted) + (127u + 64u);
  return p * std::bit_cast<float>(biased << 23) * 0x1p-64f;
}

namespace detail {

/// x = mantissa * 2^exponent for finite x > 0, with the mantissa in [sqrt(1/2), sqrt(2)).
struct SplitFloat {
  float mantissa;
  std::int32_t exponent;
};

inline SplitFloat split_float(float x) {
  const bool subnormal = x < 0x1p-126f;
  const float normal = select(subnormal, x * 0x1p23f, x);
  constexpr std::uint32_t kRootOfHalf = 0x3f3504f3;
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(normal);
  const std::int32_t exponent = static_cast<std::int32_t>(bits - kRootOfHalf) >> 23;
  return {std::bit_cast<float>(bits - (static_cast<std::uint32_t>(exponent) << 23)),
          exponent - 23 * static_cast<std::int32_t>(subnormal)};
}

}  // namespace detail

/// log(x), within 1.5 units in the last place, subnormal x too; -infinity at 0, NaN below 0. The polynomial of Cephes'
/// logf (Moshier).
inline float vector_log(float x) {
  const auto [mantissa, power] = detail::split_float(x);
  const float exponent = static_cast<float>(power), r = mantissa - 1.0f, r2 = r * r;
  float p = 7.0376836292e-2f;
  p = p * r + -1.1514610310e-1f;
  p = p * r + 1.1676998740e-1f;
  p = p * r + -1.2420140846e-1f;
  p = p * r + 1.4249322787e-1f;
  p = p * r + -1.6668057665e-1f;
  p = p * r + 2.0000714765e-1f;
  p = p * r + -2.4999993993e-1f;
  p = p * r + 3.3333331174e-1f;
  float tail = p * r * r2 + exponent * -2.12194440e-4f;
  tail = tail - 0.5f * r2;
  const float finite = r + tail + exponent * 0.693359375f;
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const float positive = detail::select(x < kInfinity, finite, x);  // infinity and NaN stay what they are
  const float defined = detail::select(x < 0.0f, std::numeric_limits<float>::quiet_NaN(), positive);
  return detail::select(x == 0.0f, -kInfinity, defined);
}

/// log(1 + x) for finite x >= 0, within 3 units in the last place. NaN stays NaN. What rounds off in 1 + x is made
/// good by a factor (Goldberg: "What every computer scientist should know about floating-point arithmetic", 1991,
/// theorem 4).
inline float vector_log1p(float x) {
  const float sum = 1.0f + x, rounded = sum - 1.0f;
  const bool is_nothing = rounded == 0.0f;
  return detail::select(is_nothing, x, vector_log(sum) * (x / detail::select(is_nothing, 1.0f, rounded)));
}

/// log(1 + x), within 3 units in the last place, for all x: -infinity at -1, NaN below. NaN stays NaN.
inline float vector_log1p_to_ends(float x) {
  const float finite = vector_log1p(detail::select(x < std::numeric_limits<float>::infinity(), x, 0.0f));
  return detail::select(x < std::numeric_limits<float>::infinity(), finite, x);
}

/// exp(x) - 1, within 4 units in the last place, infinite above 88.7. NaN stays NaN. Near 0 by exp's polynomial less
/// its 1, else by exp.
inline float vector_expm1(float x) {
  const float near_zero = x * (1.0f + detail::exp_remainder(x) * x);
  return detail::select(std::abs(x) < 0.34657359f, near_zero, vector_exp_to_ends(x) - 1.0f);  // half of ln 2
}

/// log(1 + exp(x)) for x <= 0, within 4 units in the last place; 0 below -87, where it is hardly a normal float. NaN
/// stays NaN. By masks: with a choice in its exp, GCC has no vectors for loops over it.
inline float vector_log1p_exp(float x) {
  const bool is_nothing = x < -87.0f;
  const auto [p, shifted] = detail::split_exp(detail::select(is_nothing, 0.0f, x));
  const std::uint32_t biased = std::bit_cast<std::uint32_t>(shifted) + 127u;
  return detail::select(is_nothing, 0.0f, vector_log1p(p * std::bit_cast<float>(biased << 23)));
}

/// tanh(x), within 3 units in the last place. NaN stays NaN. The polynomial of Cephes' tanhf (Moshier) near 0, else by
/// exp.
inline float vector_tanh(float x) {
  const float size = std::abs(x), x2 = x * x;
  float p = -5.70498872745e-3f;
  p = p * x2 + 2.06390887954e-2f;
  p = p * x2 + -5.37397155531e-2f;
  p = p * x2 + 1.33314422036e-1f;
  p = p * x2 + -3.33332819422e-1f;
  const float near_zero = p * x2 * size + size;
  const float far = 1.0f - 2.0f / (vector_exp(2.0f * size) + 1.0f);  // 1 in f32 long before vector_exp() ends
  return std::copysign(size < 0.625f ? near_zero : far, x);
}

namespace detail {

/// log2(x) for finite x > 0, relative error below 1e-11: the series of atanh((m - 1) / (m + 1)) for x = m 2^e.
inline double wide_log2(float x) {
  const auto [mantissa, power] = split_float(x);
  const double m = static_cast<double>(mantissa), t = (m - 1.0) / (m + 1.0), t2 = t * t;
  double p = 1.0 / 13.0;
  p = p * t2 + 1.0 / 11.0;
  p = p * t2 + 1.0 / 9.0;
  p = p * t2 + 1.0 / 7.0;
  p = p * t2 + 1.0 / 5.0;
  p = p * t2 + 1.0 / 3.0;
  p = p * t2 + 1.0;
  return static_cast<double>(power) + t * p * 2.885390081777926815;  // 2 / ln 2
}

/// 2^x for |x| < 1000, relative error below 1e-9. NaN stays NaN.
inline double wide_exp2(double x) {
  constexpr double kRoundToInteger = 0x1.8p52;
  const double shifted = x + kRoundToInteger, r = (x - (shifted - kRoundToInteger)) * 0.693147180559945309;
  double p = 1.0 / 40320.0;
  p = p * r + 1.0 / 5040.0;
  p = p * r + 1.0 / 720.0;
  p = p * r + 1.0 / 120.0;
  p = p * r + 1.0 / 24.0;
  p = p * r + 1.0 / 6.0;
  p = p * r + 0.5;
  p = p * r + 1.0;
  p = p * r + 1.0;
  return p * std::bit_cast<double>((std::bit_cast<std::uint64_t>(shifted) + 1023u) << 52);
}

}  // namespace detail

/// x to the power of y, within 0.6 units in the last place, by way of doubles; zeros, infinities, NaN and negative x as
/// C's pow() has them: pow(x, 0) and pow(1, y) are 1 whatever the other is, a negative x takes whole y only.
inline float vector_pow(float x, float y) {
  using detail::select;
  constexpr float kInfinity = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();
  const float size = std::abs(x), exponent_size = std::abs(y);
  // log2 of 0 and infinity, and of NaN, which it stays, by way of a factor; log2 of the others by the series.
  const float log2_of_ends = select(size == 0.0f, -kInfinity, size);
  const bool at_end = !((size > 0.0f) & (size < kInfinity));
  const double log2_size = detail::wide_log2(size) + static_cast<double>(select(at_end, log2_of_ends, 0.0f));
  const double product = static_cast<double>(y) * log2_size;
  const double not_below = select(product < -160.0, -160.0, product);
  const float power = static_cast<float>(detail::wide_exp2(select(product > 160.0, 160.0, not_below)));
  // Numbers of 2^23 and more are whole, those of 2^24 and more are even.
  constexpr float kRoundToInteger = 0x1p23f;
  const float half = 0.5f * exponent_size;
  const float rounded = (exponent_size + kRoundToInteger) - kRoundToInteger;
  const float half_rounded = (half + kRoundToInteger) - kRoundToInteger;
  const bool is_whole = (rounded == exponent_size) | (exponent_size >= kRoundToInteger);
  const bool is_even = (half_rounded == half) | (half >= kRoundToInteger);
  const float with_sign = select(is_whole & !is_even, std::copysign(power, x), power);
  const float defined = select((x < 0.0f) & (size < kInfinity) & !is_whole, kNan, with_sign);
  const bool is_one = (x == 1.0f) | (y == 0.0f) | ((size == 1.0f) & (exponent_size == kInfinity));
  return select(is_one, 1.0f, defined);
}

/// These functions by the names that formulas know them by.
struct VectorMath {
  static float exp(float x) { return vector_exp_to_ends(x); }
  static float exp_of_negative(float x) { return vector_exp_of_negative(x); }
  static float expm1(float x) { return vector_expm1(x); }
  static float log(float x) { return vector_log(x); }
  static float log1p(float x) { return vector_log1p_to_ends(x); }
  static float log1p_exp(float x) { return vector_log1p_exp(x); }
  static float sqrt(float x) { return std::sqrt(x); }  // an instruction where nobody asks for errno
  static float tanh(float x) { return vector_tanh(x); }
  static float abs(float x) { return std::abs(x); }
  static float pow(float x, float y) { return vector_pow(x, y); }
  static float select(bool condition, float yes, float no) { return detail::select(condition, yes, no); }
};

}  // namespace tandem::kernels::cpu
