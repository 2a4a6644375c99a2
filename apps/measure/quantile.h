// The middle and the edges of a set of measurements.
#pragma once

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace tandem::apps {

/// The value that a share `q` in [0, 1] of the values is below, between neighbours in proportion; 0 for none.
inline double quantile(std::vector<double> values, double q) {
  if (values.empty()) return 0.0;
  std::sort(values.begin(), values.end());
  const double place = q * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (place - std::floor(place)) * (values[above] - values[below]);
}

inline double median(std::vector<double> values) { return quantile(std::move(values), 0.5); }

}  // namespace tandem::apps
