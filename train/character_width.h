// Characters of UTF-8 text, and the columns that they take on a terminal.
#pragma once

#include <cstddef>
#include <string_view>

namespace tandem::train {

struct Character {
  std::size_t bytes = 1;
  int columns = 1;
};

/// The character of `text` that begins at byte `at`, which is below text.size(). As wcwidth() of C libraries counts:
/// ideographs and emoji take 2 columns, marks that are drawn onto the character before them 0, all others 1. Control
/// characters count as 1, and so does each byte that is no UTF-8.
Character character_at(std::string_view text, std::size_t at);

}  // namespace tandem::train
