// What files may have gone through: cuts and flipped bits.
#pragma once

#include "tandem/core/random.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace tandem::test {

constexpr std::uint32_t kFlips = 10'000;

/// Calls `body` with `good` cut at each of its first `header` bytes and at its end but one, and then with 10,000 copies
/// that have a bit flipped, every other one of them in the header.
template <typename Bytes, typename Body>
void for_each_damage(const Bytes& good, std::size_t header, Body&& body) {
  for (std::size_t size = 0; size < std::min(header, good.size()); ++size)
    body(Bytes(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size)));
  body(Bytes(good.begin(), good.end() - 1));
  for (std::uint32_t i = 0; i < kFlips; ++i) {
    const RandomKey random{.seed = 11, .step = i};
    const std::size_t reach = i % 2 == 0 ? std::min(header, good.size()) : good.size();
    const std::size_t at = std::min(static_cast<std::size_t>(random.uniform(0) * static_cast<float>(reach)), reach - 1);
    Bytes bytes = good;
    bytes[at] = static_cast<typename Bytes::value_type>(bytes[at] ^ (1 << static_cast<int>(random.uniform(1) * 8)));
    body(bytes);
  }
}

}  // namespace tandem::test
