// A search in ranges.
#include "tandem/train/character_width.h"

#include "tandem/train/character_width_table.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

namespace tandem::train {
namespace {

bool is_in(std::span<const detail::CharacterRange> ranges, char32_t code) {
  const auto after = std::ranges::upper_bound(ranges, code, {}, &detail::CharacterRange::first);
  return after != ranges.begin() && code <= std::prev(after)->last;
}

int columns_of(char32_t code) {
  if (is_in(detail::kDoubleWidth, code)) return 2;
  return is_in(detail::kZeroWidth, code) ? 0 : 1;
}

}  // namespace

Character character_at(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint32_t>(static_cast<unsigned char>(text[i])); };
  const std::uint32_t first = byte(at);
  if (first < 0xC2 || first > 0xF4) return {};
  const std::size_t bytes = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (at + bytes > text.size()) return {};
  std::uint32_t code = first & (0xFFU >> (bytes + 1));
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(at + i) & 0xC0U) != 0x80U) return {};
    code = code << 6U | (byte(at + i) & 0x3FU);
  }
  constexpr std::array<char32_t, 3> kLeast{0x80, 0x800, 0x10000};  // that need so many bytes
  const bool is_surrogate = code >= 0xD800 && code <= 0xDFFF;
  if (code < kLeast[bytes - 2] || is_surrogate || code > 0x10FFFF) return {};
  return {bytes, columns_of(code)};
}

}  // namespace tandem::train
