// Numbers as people read and write them.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tandem {

/// In decimal digits, with a comma between thousands.
///
/// Example:
///     const std::string text = with_separators(1234567);  // "1,234,567"
std::string with_separators(std::int64_t number);

/// The number that the whole of `text` is, in decimal digits; nothing if it is none, or none that a T holds. Neither
/// blanks nor a plus sign are skipped.
///
/// Example:
///     const int threads = parse_number<int>("12").value_or(0);     // 12
///     const bool is_number = parse_number<int>("12 ").has_value();  // false
template <typename T>
std::optional<T> parse_number(std::string_view text) {
  T value{};
  const char *const begin = text.data(), *const end = begin + text.size();
  const auto [stop, error] = std::from_chars(begin, end, value);
  return error == std::errc{} && stop == end ? std::optional(value) : std::nullopt;
}

}  // namespace tandem
