// What a few seeds tell: means, how sure they are, and differences.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace tandem::study {

/// Of the finite ones of some values. What cannot be told of so few is NaN.
struct Sample {
  std::size_t count = 0;
  double mean = std::numeric_limits<double>::quiet_NaN();
  double deviation = std::numeric_limits<double>::quiet_NaN();   ///< standard deviation of a sample, of two or more
  double half_width = std::numeric_limits<double>::quiet_NaN();  ///< of the 95 % interval of the mean (Student's t)
};

Sample sample_of(const std::vector<double>& values);

/// The value that Student's t of so many degrees of freedom (above 0; need not be whole) stays below with this
/// probability, of 0.5 to 1. Within 1e-6 of tables.
double student_quantile(double probability, double degrees);

enum class Certainty : std::uint8_t {
  higher,   ///< the 95 % interval of the difference lies above 0
  lower,    ///< below
  noise,    ///< it holds 0
  same,     ///< all values of both are one number
  unknown,  ///< one of them has one value only, or both: spread cannot be told
  missing   ///< one of them has none
};

/// Of the means of two samples: a - b, with its 95 % interval by Welch's t-test.
struct Difference {
  Certainty certainty = Certainty::missing;
  double mean = std::numeric_limits<double>::quiet_NaN();
  double low = std::numeric_limits<double>::quiet_NaN(), high = std::numeric_limits<double>::quiet_NaN();
};

Difference difference_of(const Sample& a, const Sample& b);

}  // namespace tandem::study
