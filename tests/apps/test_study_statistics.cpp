// Means, intervals and differences against tables and known examples.
#include "apps/study/statistics.h"
#include "tests/support/catch.h"

#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

using namespace tandem::study;

namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

Certainty certainty(const std::vector<double>& a, const std::vector<double>& b) {
  return difference_of(sample_of(a), sample_of(b)).certainty;
}

}  // namespace

TEST_CASE("quantiles of Student's t are those of its tables") {
  for (const double p : {0.6, 0.9, 0.975, 0.999}) {  // whose quantiles are formulas
    CHECK(student_quantile(p, 1.0) == Approx(std::tan(std::numbers::pi * (p - 0.5))).epsilon(1e-6));
    CHECK(student_quantile(p, 2.0) == Approx((2.0 * p - 1.0) / std::sqrt(2.0 * p * (1.0 - p))).epsilon(1e-6));
  }
  CHECK(student_quantile(0.975, 4.0) == Approx(2.77645).epsilon(1e-5));
  CHECK(student_quantile(0.95, 10.0) == Approx(1.81246).epsilon(1e-5));
  CHECK(student_quantile(0.975, 2.5) == Approx(3.57465).epsilon(1e-5));  // degrees of Welch's test need not be whole
  CHECK(student_quantile(0.975, 1e6) == Approx(1.95996).epsilon(1e-5));
  CHECK(student_quantile(0.5, 3.0) == Approx(0.0).margin(1e-9));
  CHECK_THROWS_WITH(student_quantile(1.0, 3.0), tandem::test::ContainsText("degrees of freedom above 0"));
}

TEST_CASE("a sample tells what its number of values allows") {
  const Sample none = sample_of({kNaN}), one = sample_of({3.0, kNaN}), three = sample_of({1.0, 2.0, 3.0});
  CHECK(none.count == 0);
  CHECK(std::isnan(none.mean));
  CHECK(one.count == 1);
  CHECK(one.mean == 3.0);
  CHECK(std::isnan(one.deviation));
  CHECK(std::isnan(one.half_width));
  CHECK(three.deviation == Approx(1.0));
  CHECK(three.half_width == Approx(4.30265 / std::sqrt(3.0)).epsilon(1e-5));
}

TEST_CASE("a difference is clear where its interval leaves out zero") {
  CHECK(certainty({10.0, 10.1, 9.9}, {5.0, 5.1, 4.9}) == Certainty::higher);
  CHECK(certainty({5.0, 5.1, 4.9}, {10.0, 10.1, 9.9}) == Certainty::lower);
  CHECK(certainty({10.0, 12.0, 8.0}, {9.0, 11.0, 7.5}) == Certainty::noise);
  CHECK(certainty({2.0, 2.0}, {2.0, 2.0}) == Certainty::same);
  CHECK(certainty({3.0, 3.0}, {2.0, 2.0}) == Certainty::higher);  // none of them ever was otherwise
  CHECK(certainty({3.0}, {2.0, 2.1}) == Certainty::unknown);
  CHECK(certainty({3.0, kNaN}, {2.0, 2.1}) == Certainty::unknown);
  CHECK(certainty({kNaN, kNaN}, {2.0, 2.1}) == Certainty::missing);
  CHECK(certainty({2.0, 2.1}, {}) == Certainty::missing);
}

TEST_CASE("the interval of a difference is Welch's") {
  const Difference difference = difference_of(sample_of({20.0, 21.0, 22.0}), sample_of({23.0, 27.0, 22.0}));
  // s^2 = 1 and 7; error sqrt(8 / 3); degrees (8/3)^2 / ((1/3)^2 / 2 + (7/3)^2 / 2) = 2.56
  CHECK(difference.mean == Approx(-3.0));
  const double half = student_quantile(0.975, 2.56) * std::sqrt(8.0 / 3.0);
  CHECK(difference.low == Approx(-3.0 - half));
  CHECK(difference.high == Approx(-3.0 + half));
  CHECK(difference.certainty == Certainty::noise);
}
