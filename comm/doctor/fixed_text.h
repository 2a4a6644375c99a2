// Texts in structures that other processes read.
#pragma once

#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>

namespace tandem::comm {

/// What is too long is cut.
template <std::size_t Size>
void copy_text(std::string_view text, char (&into)[Size]) {
  into[text.copy(into, Size - 1)] = '\0';
}

/// Also of bytes without an end.
template <std::size_t Size>
std::string text_in(const char (&chars)[Size]) {
  return {chars, strnlen(chars, Size)};
}

}  // namespace tandem::comm
