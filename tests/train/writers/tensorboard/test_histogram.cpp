// Histograms against plain loops over all values.
#include "tandem/train/writers/tensorboard/histogram.h"

#include "tests/support/catch.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <random>

using namespace tandem;
using train::detail::Histogram;
using train::detail::histogram_of;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity(),
                 kDenormal = std::numeric_limits<double>::denorm_min();

/// Value by value: what the header says.
Histogram plain_histogram(std::vector<double> values, int bins) {
  std::erase_if(values, [](double value) { return !std::isfinite(value); });
  Histogram result;
  if (values.empty()) return result;
  result.min = *std::ranges::min_element(values);
  result.max = *std::ranges::max_element(values);
  const double largest = std::max(std::abs(result.min), std::abs(result.max));
  const long double range = static_cast<long double>(result.max) - static_cast<long double>(result.min);  // wider
  const auto doubles = range / static_cast<long double>(largest - std::nextafter(largest, 0.0));
  const int used = range == 0.0L ? 1 : static_cast<int>(std::min<long double>(doubles, bins));
  const long double width = range / used;
  for (int i = 1; i < used; ++i)
    result.limits.push_back(static_cast<double>(static_cast<long double>(result.min) + i * width));
  result.limits.push_back(result.max);
  result.counts.resize(static_cast<std::size_t>(used));
  long double sum = 0.0L;
  for (const double value : values) {
    const long double place =
        used == 1 ? 0.0L : std::floor((static_cast<long double>(value) - static_cast<long double>(result.min)) / width);
    ++result.counts[static_cast<std::size_t>(std::clamp<long double>(place, 0.0L, used - 1))];
    ++result.count;
    sum += static_cast<long double>(value);
    result.sum_of_squares += value * value;
  }
  result.sum = static_cast<double>(sum);
  return result;
}

/// Two sums of these in different orders differ by no more: each of n additions rounds by half a unit.
double sum_tolerance(const std::vector<double>& values, double power) {
  double size = 0.0;
  const double unit = 2.0 * static_cast<double>(values.size()) * std::numeric_limits<double>::epsilon();
  for (const double value : values)
    if (std::isfinite(value)) size += unit * std::pow(std::abs(value), power);
  return size;
}

void check_sum(double sum, double expected, double tolerance) {
  if (std::isfinite(expected))
    CHECK(std::abs(sum - expected) <= tolerance);
  else
    CHECK(sum == expected);
}

/// Rounded otherwise by some units, and never alike.
void check_limits(const Histogram& found, const Histogram& expected) {
  REQUIRE(found.limits.size() == expected.limits.size());
  const double size = std::max(std::abs(found.min), std::abs(found.max)),
               tolerance = std::max(size * 2.0 * std::numeric_limits<double>::epsilon(), kDenormal);
  for (std::size_t i = 0; i < found.limits.size(); ++i)
    CHECK(std::abs(found.limits[i] - expected.limits[i]) <= tolerance);
  CHECK(std::ranges::adjacent_find(found.limits, std::greater_equal()) == found.limits.end());
  if (!found.limits.empty()) CHECK(found.limits.back() == found.max);
}

/// What the header says of bins.
void check_counts_by_limits(const std::vector<double>& values, const Histogram& found) {
  std::vector<double> counts(found.limits.size());
  for (const double value : values) {
    const auto above = std::ranges::upper_bound(found.limits, value) - found.limits.begin();
    ++counts[static_cast<std::size_t>(std::min(above, std::ssize(counts) - 1))];
  }
  CHECK(found.counts == counts);
}

void check_as_plain(const Tensor& tensor, int bins = 64) {
  const auto values = tensor.to_vector<double>();
  const Histogram expected = plain_histogram(values, bins), found = histogram_of(tensor, bins);
  CHECK(found.min == expected.min);
  CHECK(found.max == expected.max);
  CHECK(found.count == expected.count);
  check_limits(found, expected);
  CHECK(found.counts == expected.counts);
  check_sum(found.sum, expected.sum, sum_tolerance(values, 1.0));
  check_sum(found.sum_of_squares, expected.sum_of_squares, sum_tolerance(values, 2.0));
}

std::vector<double> normal_values(std::int64_t count) {
  std::mt19937 random(static_cast<unsigned>(count));
  std::normal_distribution<double> normal(0.1, 3.0);
  std::vector<double> values(static_cast<std::size_t>(count));
  for (double& value : values) value = normal(random);
  return values;
}

template <typename T>
Tensor tensor_of(const std::vector<double>& values) {
  std::vector<T> converted;
  for (const double value : values) converted.push_back(static_cast<T>(static_cast<float>(value)));
  return Tensor::from(converted, {std::ssize(converted)});
}

}  // namespace

TEST_CASE("histograms count what plain loops count, whatever the number of values") {
  for (const std::int64_t count : {0, 1, 2, 31, 32, 33, 511, 512, 513, 5000}) {
    CAPTURE(count);
    const auto values = normal_values(count);
    check_as_plain(tensor_of<float>(values));
    check_as_plain(tensor_of<Half>(values));
    check_as_plain(tensor_of<BFloat16>(values));
    check_as_plain(tensor_of<std::int64_t>(values));
    check_as_plain(Tensor::from(values, {count}), 1);
    check_as_plain(Tensor::from(values, {count}), 7);
  }
}

TEST_CASE("histograms leave out what is not finite, wherever it stands") {
  for (const std::int64_t count : {40, 512, 1300}) {
    auto values = normal_values(count);
    for (std::size_t i = 0; i < values.size(); i += 97) values[i] = i % 2 == 0 ? std::nan("") : kInfinity;
    values.back() = -kInfinity;
    check_as_plain(Tensor::from(values, {count}));
  }
  CHECK(histogram_of(Tensor::full({600}, std::nan(""))).count == 0.0);
}

TEST_CASE("histograms of values at the ends of bins, of doubles, and all alike") {
  std::vector<double> steps(1025);
  for (std::size_t i = 0; i < steps.size(); ++i) steps[i] = static_cast<double>(i) / 16.0;
  check_as_plain(Tensor::from(steps, {1025}));
  const double least = kDenormal, most = std::numeric_limits<double>::max();
  check_as_plain(Tensor::from(std::vector<double>{-most, -1.0, 0.0, 1.0, most}, {5}));
  check_as_plain(Tensor::from(std::vector<double>{100 * least, 101 * least, 101 * least}, {3}));  // of no width
  check_as_plain(Tensor::from(std::vector<double>{1.0, 1.0 + std::numeric_limits<double>::epsilon()}, {2}));
  check_as_plain(Tensor::full({1000}, -0.25));
}

TEST_CASE("histograms of ranges that have few doubles have as few bins, each value in its own") {
  const auto beside = [](double value, int steps) {
    for (; steps > 0; --steps) value = std::nextafter(value, kInfinity);
    return value;
  };
  for (const double least : {0.0, 1.0, -1.0, 1e300, -1e300, 1e-320, -1e-322, 3.0, 1e17}) {
    for (const int range : {1, 2, 3, 5, 63, 64, 65}) {
      std::vector<double> values;
      for (int step = 0; step <= range; ++step) values.push_back(beside(least, step));
      CAPTURE(least, range);
      const Histogram found = histogram_of(Tensor::from(values, {std::ssize(values)}));
      check_as_plain(Tensor::from(values, {std::ssize(values)}));
      if (range <= 64) check_counts_by_limits(values, found);
    }
  }
}

TEST_CASE("histograms of values near both limits of doubles have their sum, and infinity where it is beyond") {
  const double most = 0x1p1023;
  std::vector<double> values(70);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = i % 2 == 0 ? most : -most;
  values[1] = -most / 2;
  check_as_plain(Tensor::from(values, {70}));
  check_counts_by_limits(values, histogram_of(Tensor::from(values, {70})));
  CHECK(histogram_of(Tensor::from(values, {70})).sum == most / 2);
  values[0] = values[2] = -most;
  CHECK(histogram_of(Tensor::from(values, {70})).sum == -kInfinity);
}

TEST_CASE("histograms of views are those of their elements") {
  const Tensor image = Tensor::from(normal_values(3 * 8 * 9 * 11), {3, 8, 9, 11}, Layout::channels_last);
  check_as_plain(image);
  check_as_plain(image.narrow(1, 2, 3));
  check_as_plain(image.select(3, 4));
  check_as_plain(image.narrow(0, 0, 1).expand({2, 8, 9, 11}));
}
