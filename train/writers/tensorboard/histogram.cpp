// Two passes: range and sums, then bins. Each takes some hundred values at a time, as doubles that stay in the first
// cache, in loops over arrays that compilers turn into vector instructions.
#include "tandem/train/writers/tensorboard/histogram.h"

#include "tandem/core/dtype.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>
#include <tuple>

namespace tandem::train::detail {
namespace {

constexpr std::size_t kChunk = 512;
constexpr std::size_t kLanes = 32;  // that are summed beside each other

/// Takes out what is not finite; the rest moves to the front.
std::span<const double> only_finite(std::span<double> values) {
  std::int64_t finite = 0;
  for (const double value : values) finite += std::abs(value) <= std::numeric_limits<double>::max() ? 1 : 0;
  if (finite < std::ssize(values))  // seldom: it takes longer than to count
    std::ignore = std::remove_if(values.begin(), values.end(), [](double value) { return !std::isfinite(value); });
  return values.first(static_cast<std::size_t>(finite));
}

/// Calls body(values) on the finite values of a dense tensor on the CPU, in the order of its memory, up to kChunk at a
/// time.
template <typename Body>
void for_each_chunk(const Tensor& dense, Body&& body) {
  dispatch_all(dense.dtype(), "histogram", [&](auto tag) {
    using From = typename decltype(tag)::type;
    std::array<double, kChunk> chunk;
    for (std::span<const From> rest(dense.data<From>(), static_cast<std::size_t>(dense.numel())); !rest.empty();) {
      const auto taken = rest.first(std::min(kChunk, rest.size()));
      rest = rest.subspan(taken.size());
      for (std::size_t i = 0; i < taken.size(); ++i)
        chunk[i] = static_cast<double>(static_cast<compute_t<From>>(taken[i]));
      body(only_finite(std::span(chunk).first(taken.size())));
    }
  });
}

/// Range and sums in several lanes, for one value need not wait for the one before.
struct Lanes {
  std::array<double, kLanes> min, max, sum{}, sum_of_squares{};

  Lanes() {
    min.fill(std::numeric_limits<double>::infinity());
    max.fill(-std::numeric_limits<double>::infinity());
  }

  void add(double value, std::size_t lane) {
    min[lane] = std::min(min[lane], value);
    max[lane] = std::max(max[lane], value);
    sum[lane] += value;
    sum_of_squares[lane] += value * value;
  }

  void add(std::span<const double> values) {
    std::size_t i = 0;
    for (; i + kLanes <= values.size(); i += kLanes)
      for (std::size_t lane = 0; lane < kLanes; ++lane) add(values[i + lane], lane);
    for (std::size_t lane = 0; i < values.size(); ++lane) add(values[i++], lane);
  }
};

/// The sum of values some of which are near the limits of doubles: smaller by a power of two, none of their sums is
/// beyond.
double scaled_sum(const Tensor& dense) {
  constexpr int kBits = 64;  // a tensor has fewer values
  double sum = 0.0;
  for_each_chunk(dense, [&](std::span<const double> values) {
    for (const double value : values) sum += std::ldexp(value, -kBits);
  });
  return std::ldexp(sum, kBits);
}

/// All but limits and counts.
Histogram moments_of(const Tensor& dense) {
  Lanes lanes;
  Histogram result;
  for_each_chunk(dense, [&](std::span<const double> values) {
    lanes.add(values);
    result.count += static_cast<double>(values.size());
  });
  if (result.count == 0.0) return result;
  result.min = *std::ranges::min_element(lanes.min);
  result.max = *std::ranges::max_element(lanes.max);
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    result.sum += lanes.sum[lane];
    result.sum_of_squares += lanes.sum_of_squares[lane];
  }
  if (!std::isfinite(result.sum)) result.sum = scaled_sum(dense);  // infinities of both signs, or too large
  return result;
}

/// Bins of one width.
struct Bins {
  double least, most;
  int count;  ///< so many that each limit is another double

  Bins(double min, double max, int wanted) : least(min), most(max), count(wanted) {
    const double largest = std::max(std::abs(min), std::abs(max)), spacing = largest - std::nextafter(largest, 0.0);
    count = min < max ? static_cast<int>(std::clamp((max - min) / spacing, 1.0, static_cast<double>(wanted))) : 1;
  }
  /// By what to multiply, so that the range, and a part of it, is a double of full precision.
  double scale() const {
    const double range = most - least;
    return !std::isfinite(range) ? 0x1p-1 : range < 0x1p-900 ? 0x1p64 : 1.0;
  }
  /// Multiplied by scale().
  double width() const { return (most * scale() - least * scale()) / count; }
  double limit(int i) const { return i == count ? most : std::fma(i, width(), least * scale()) / scale(); }
};

/// How many values lie in each bin; their width is above 0.
std::vector<double> counts_of(const Tensor& dense, const Bins& layout) {
  // Values near each other are often of one bin, and an addition to a place in memory waits for the one before.
  constexpr std::size_t kTables = 4;
  const auto bins = static_cast<std::size_t>(layout.count);
  std::vector<std::int64_t> tables(kTables * bins);
  std::array<std::int32_t, kChunk> places;
  const double scale = layout.scale(), least = layout.least * scale, width = layout.width(), last = layout.count - 1.0;
  for_each_chunk(dense, [&](std::span<const double> values) {
    for (std::size_t i = 0; i < values.size(); ++i)
      places[i] = static_cast<std::int32_t>(i % kTables * bins) +
                  static_cast<std::int32_t>(std::clamp((values[i] * scale - least) / width, 0.0, last));
    for (const std::int32_t place : std::span(places).first(values.size())) ++tables[static_cast<std::size_t>(place)];
  });
  std::vector<double> counts(bins);
  for (std::size_t i = 0; i < tables.size(); ++i) counts[i % bins] += static_cast<double>(tables[i]);
  return counts;
}

}  // namespace

Histogram histogram_of(const Tensor& values, int bins) {
  const Tensor here = values.detach().to(Device{});
  const Tensor dense = here.is_dense() ? here : here.contiguous();
  Histogram result = moments_of(dense);
  if (result.count == 0.0) return result;
  const Bins layout(result.min, result.max, bins);
  for (int i = 1; i <= layout.count; ++i) result.limits.push_back(layout.limit(i));
  result.counts = result.min < result.max ? counts_of(dense, layout) : std::vector{result.count};
  return result;
}

}  // namespace tandem::train::detail
