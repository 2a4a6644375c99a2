// Whole numbers that order the elements of a row as topk() does: the greater the key, the better the element. All keys
// of a row differ, so that every way of finding the greatest gives the same.
//
// constexpr, so that nvcc takes them for device code as well.
#pragma once

#include <bit>
#include <cstdint>

namespace tandem::kernels {

/// Numbers in the order of floats: NaN above all, -0 and 0 alike.
constexpr std::uint32_t order_of(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value + 0.0f);  // -0 + 0 is 0
  const std::uint32_t ordered = (bits >> 31) != 0 ? ~bits : bits | 0x80000000u;
  return value != value ? 0xffffffffu : ordered;
}

/// Of element number `index`; never 0, as no row has 2^32 elements.
constexpr std::uint64_t rank_key(float value, std::uint32_t index, bool largest) {
  const std::uint32_t order = order_of(value);
  return std::uint64_t{largest ? order : ~order} << 32 | ~index;
}

/// The number of the element that the key is of.
constexpr std::uint32_t index_of(std::uint64_t key) { return ~static_cast<std::uint32_t>(key); }

/// The greater, the earlier the element stands in its row; the same the other way round.
constexpr std::uint64_t swap_halves(std::uint64_t key) { return key << 32 | key >> 32; }

}  // namespace tandem::kernels
