// Quotes where they have to be.
#include "tandem/train/shell_word.h"

#include <algorithm>
#include <cctype>

namespace tandem::train {

std::string shell_word(std::string_view word) {
  const bool is_plain = !word.empty() && std::ranges::all_of(word, [](unsigned char c) {
    return std::isalnum(c) != 0 || std::string_view("-_=./:,+%@").find(static_cast<char>(c)) != std::string_view::npos;
  });
  if (is_plain) return std::string(word);
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string shell_option(std::string_view name, std::string_view value) {
  return std::string(name) + (value.starts_with('-') ? "=" : " ") + shell_word(value);
}

}  // namespace tandem::train
