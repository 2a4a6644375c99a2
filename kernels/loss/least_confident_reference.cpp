// The least confident rows in plain loops.
#include "tandem/kernels/loss/confidence.h"
#include "tandem/kernels/loss/least_confident_implementations.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

namespace tandem::kernels::reference {

namespace {

/// Of a row of `classes` elements, `stride` apart.
template <typename T>
std::uint64_t key_of_row(const T* row, std::int64_t classes, std::int64_t stride) {
  const auto at = [&](std::int64_t c) { return static_cast<double>(static_cast<compute_t<T>>(row[c * stride])); };
  double largest = -std::numeric_limits<double>::infinity();
  bool has_nan = false;
  for (std::int64_t c = 0; c < classes; ++c) {
    has_nan = has_nan || std::isnan(at(c));
    if (at(c) > largest) largest = at(c);
  }
  std::array<double, kConfidenceSums> sums{};
  for (std::int64_t c = 0; c < classes; ++c)
    sums[static_cast<std::size_t>(c % kConfidenceSums)] += exp_of_negative(at(c) - largest);
  for (std::size_t distance = kConfidenceSums / 2; distance > 0; distance /= 2)
    for (std::size_t i = 0; i < distance; ++i) sums[i] += sums[i + distance];
  return confidence_key(largest, sums[0], has_nan);
}

std::vector<std::uint64_t> confidence_keys(const Tensor& logits) {
  std::vector<std::uint64_t> keys;
  dispatch_floating(logits.dtype(), "least_confident", [&]<typename T>(TypeTag<T>) {
    for (std::int64_t n = 0; n < logits.size(0); ++n)
      keys.push_back(key_of_row(logits.data<T>() + n * logits.stride(0), logits.size(1), logits.stride(1)));
  });
  return keys;
}

}  // namespace

void least_confident(const Tensor& logits, const Out& chosen, const Out& places) {
  const std::vector<std::uint64_t> keys = confidence_keys(logits);
  std::vector<std::int64_t> order(keys.size());
  std::iota(order.begin(), order.end(), std::int64_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    return keys[static_cast<std::size_t>(a)] < keys[static_cast<std::size_t>(b)];
  });
  auto* const place = places.data<std::int64_t>();
  std::iota(place, place + places.size(0), std::int64_t{0});
  for (std::int64_t m = 0; m < chosen.size(0); ++m) {
    const std::int64_t row = order[static_cast<std::size_t>(m)];
    chosen.data<std::int64_t>()[m] = row;
    place[row] = logits.size(0) + m;
  }
}

}  // namespace tandem::kernels::reference
