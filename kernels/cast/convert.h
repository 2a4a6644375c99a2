// Conversion of one element between any two dtypes, with one rounding. All constexpr, so that CUDA kernels may call it.
#pragma once

#include "tandem/core/dtype.h"

#include <cstdint>
#include <limits>
#include <type_traits>

namespace tandem::kernels {

namespace detail {

template <typename T>
constexpr T absolute(T value) {
  return value < T{0} ? -value : value;
}

/// double -> float, rounded to odd: inexact results get an odd last bit, so that rounding once more to a type with at
/// least two bits less gives what a single rounding would have given.
constexpr float round_to_odd(double value) {
  const float nearest = static_cast<float>(value);
  if (!(absolute(value) <= std::numeric_limits<float>::max()) || static_cast<double>(nearest) == value) return nearest;
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(nearest);
  if (bits & 1u) return nearest;
  // The even neighbour was chosen; the odd one on the other side of `value` is one step away. Next to zero and to the
  // largest number that step keeps its meaning: bit patterns of one sign are ordered by magnitude.
  const bool grow = absolute(value) > static_cast<double>(absolute(nearest));
  return std::bit_cast<float>(grow ? bits + 1u : bits - 1u);
}

/// i64 -> double, rounded to odd.
constexpr double round_to_odd(std::int64_t value) {
  const bool negative = value < 0;
  std::uint64_t magnitude = negative ? 0u - static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value);
  if (magnitude >> 53 != 0) magnitude = (magnitude >> 11 | ((magnitude & 0x7ffu) != 0 ? 1u : 0u)) << 11;
  return negative ? -static_cast<double>(magnitude) : static_cast<double>(magnitude);
}

}  // namespace detail

template <typename T>
inline constexpr bool is_half_type = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;

/// Rounds to nearest even towards floating types; towards integers truncates, saturates, and takes NaN to 0. Integers
/// saturate towards narrower ones.
template <typename To, typename From>
constexpr To convert(From value) {
  if constexpr (std::is_same_v<To, From>) {
    return value;
  } else if constexpr (is_half_type<From>) {
    return convert<To>(static_cast<float>(value));
  } else if constexpr (is_half_type<To>) {
    if constexpr (std::is_same_v<From, float>)
      return To(value);
    else if constexpr (std::is_same_v<From, double>)
      return To(detail::round_to_odd(value));
    else
      return To(detail::round_to_odd(detail::round_to_odd(static_cast<std::int64_t>(value))));
  } else if constexpr (std::is_floating_point_v<To>) {
    return static_cast<To>(value);
  } else if constexpr (std::is_floating_point_v<From>) {
    // 2^digits is exact in From; the largest To may not be.
    const auto limit = static_cast<From>(std::uint64_t{1} << std::numeric_limits<To>::digits);
    if (!(value == value)) return To{0};
    if (value >= limit) return std::numeric_limits<To>::max();
    if (value <= static_cast<From>(std::numeric_limits<To>::min())) return std::numeric_limits<To>::min();
    return static_cast<To>(value);
  } else {
    if (std::int64_t{value} > std::int64_t{std::numeric_limits<To>::max()}) return std::numeric_limits<To>::max();
    if (std::int64_t{value} < std::int64_t{std::numeric_limits<To>::min()}) return std::numeric_limits<To>::min();
    return static_cast<To>(value);
  }
}

}  // namespace tandem::kernels
