// Two passes: the range, then the bins.
#include "tandem/train/writers/tensorboard/histogram.h"

#include <algorithm>
#include <cmath>

namespace tandem::train::detail {

Histogram histogram_of(const Tensor& values, int bins) {
  auto finite = values.to_vector<double>();
  std::erase_if(finite, [](double value) { return !std::isfinite(value); });
  Histogram result;
  if (finite.empty()) return result;
  const auto [least, most] = std::ranges::minmax(finite);
  result.min = least;
  result.max = most;
  result.count = static_cast<double>(finite.size());
  const int used = least < most ? bins : 1;
  const double width = most / used - least / used;  // their difference may be no double
  for (int i = 1; i < used; ++i) result.limits.push_back(least + i * width);
  result.limits.push_back(most);
  result.counts.resize(static_cast<std::size_t>(used));
  for (const double value : finite) {
    const double place = width > 0.0 ? std::floor(value / width - least / width) : 0.0;
    ++result.counts[static_cast<std::size_t>(std::clamp(place, 0.0, used - 1.0))];
    result.sum += value;
    result.sum_of_squares += value * value;
  }
  return result;
}

}  // namespace tandem::train::detail
