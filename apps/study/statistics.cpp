// Student's t by the incomplete beta function (Abramowitz and Stegun 26.5.8, 26.7.1), inverted by bisection.
#include "apps/study/statistics.h"

#include "tandem/core/error.h"
#include "tandem/train/report/comparison.h"

#include <cmath>

namespace tandem::study {
namespace {

/// The continued fraction of the incomplete beta function, by Lentz's method; x below (a + 1) / (a + b + 2).
double beta_fraction(double a, double b, double x) {
  constexpr int kMostTerms = 300;
  constexpr double kTiny = 1e-300, kClose = 1e-15;
  const auto not_zero = [](double value) { return std::abs(value) < kTiny ? kTiny : value; };
  double c = 1.0, d = 1.0 / not_zero(1.0 - (a + b) * x / (a + 1.0)), result = d;
  for (int m = 1; m <= kMostTerms; ++m) {
    const double even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
    d = 1.0 / not_zero(1.0 + even * d);
    c = not_zero(1.0 + even / c);
    result *= d * c;
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
    d = 1.0 / not_zero(1.0 + odd * d);
    c = not_zero(1.0 + odd / c);
    result *= d * c;
    if (std::abs(d * c - 1.0) < kClose) break;
  }
  return result;
}

/// The regularized incomplete beta function.
double incomplete_beta(double a, double b, double x) {
  if (x <= 0.0) return 0.0;
  if (x >= 1.0) return 1.0;
  const double front =
      std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) + a * std::log(x) + b * std::log1p(-x));
  if (x < (a + 1.0) / (a + b + 2.0)) return front * beta_fraction(a, b, x) / a;
  return 1.0 - front * beta_fraction(b, a, 1.0 - x) / b;
}

/// P(T <= t), of t at least 0.
double student_probability(double t, double degrees) {
  return 1.0 - 0.5 * incomplete_beta(0.5 * degrees, 0.5, degrees / (degrees + t * t));
}

constexpr double kTwoSided95 = 0.975;

}  // namespace

double student_quantile(double probability, double degrees) {
  require(probability >= 0.5 && probability < 1.0 && degrees > 0.0,
          "student_quantile: a probability of 0.5 to below 1 and degrees of freedom above 0, not {} and {}",
          probability, degrees);
  double low = 0.0, high = 1.0;
  while (student_probability(high, degrees) < probability && high < 1e12) high *= 2.0;
  for (int i = 0; i < 200 && high - low > 1e-12 * high; ++i) {
    const double middle = 0.5 * (low + high);
    (student_probability(middle, degrees) < probability ? low : high) = middle;
  }
  return 0.5 * (low + high);
}

Sample sample_of(const std::vector<double>& values) {
  const train::report::Spread spread = train::report::spread_of(values);
  Sample sample{spread.count, spread.mean};
  if (spread.count < 2) return sample;
  const auto count = static_cast<double>(spread.count);
  sample.deviation = spread.deviation;
  sample.half_width = student_quantile(kTwoSided95, count - 1.0) * spread.deviation / std::sqrt(count);
  return sample;
}

Difference difference_of(const Sample& a, const Sample& b) {
  if (a.count == 0 || b.count == 0) return {};
  Difference difference{Certainty::unknown, a.mean - b.mean};
  if (a.count < 2 || b.count < 2) return difference;
  const double first = a.deviation * a.deviation / static_cast<double>(a.count);
  const double second = b.deviation * b.deviation / static_cast<double>(b.count);
  const double error = std::sqrt(first + second);
  double half = 0.0;
  if (error > 0.0) {
    const double degrees =
        (first + second) * (first + second) /
        (first * first / static_cast<double>(a.count - 1) + second * second / static_cast<double>(b.count - 1));
    half = student_quantile(kTwoSided95, degrees) * error;
  } else if (difference.mean == 0.0) {
    return {Certainty::same, 0.0, 0.0, 0.0};
  }
  difference.low = difference.mean - half;
  difference.high = difference.mean + half;
  difference.certainty = difference.low > 0.0    ? Certainty::higher
                         : difference.high < 0.0 ? Certainty::lower
                                                 : Certainty::noise;
  return difference;
}

}  // namespace tandem::study
