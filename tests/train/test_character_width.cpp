// Columns of characters, and what is laid out by them.
#include "tandem/train/character_width.h"

#include "tests/support/catch.h"

#include "tandem/train/character_width_table.h"
#include "tandem/train/progress_format.h"
#include "tandem/train/wrapped_text.h"

#include <algorithm>

using tandem::train::character_at;
using tandem::train::display_width;
using tandem::train::wrapped;

TEST_CASE("characters take none, one or two columns of a terminal") {
  CHECK(display_width("") == 0);
  CHECK(display_width("abc \xC2\xB1 \xE2\x80\xA6") == 7);             // ± …
  CHECK(display_width("\xE6\x97\xA5\xE6\x9C\xAC\xE8\xAA\x9E") == 6);  // ideographs
  CHECK(display_width("\xED\x95\x9C\xEA\xB5\xAD") == 4);              // Hangul syllables
  CHECK(display_width("\xE1\x84\x92\xE1\x85\xA1\xE1\x86\xAB") == 2);  // one of three letters
  CHECK(display_width("\xEF\xBC\xA1") == 2);                          // full width
  CHECK(display_width("\xEF\xBD\xB6") == 1);                          // half width
  CHECK(display_width("\xF0\x9F\x98\x80") == 2);                      // an emoji
  CHECK(display_width("\xF0\xA0\x80\x80\xF0\xBF\xBF\xBD") == 4);      // the second plane of ideographs, and the third
  CHECK(display_width("e\xCC\x81") == 1);                             // e, and its accent
  CHECK(display_width("\xE2\x80\x8B\xEF\xB8\x8F") == 0);              // invisible ones
  CHECK(display_width("\xC2\xAD") == 1);                              // a soft hyphen is seen
  CHECK(display_width("\x1b[32m\xE6\x97\xA5\x1b[0m") == 2);
  CHECK(display_width("a\x1b[3") == 1);
}

TEST_CASE("bytes that are no UTF-8 take a column each") {
  CHECK(display_width("\xff\xfe") == 2);
  CHECK(display_width("\xE6\x97") == 2);  // cut off
  CHECK(display_width("\xE6\x97x") == 3);
  CHECK(display_width("\x80\xC0\x80") == 3);
  CHECK(display_width("\xE0\x9F\xBF\xF0\x8F\xBF\xBF") == 7);  // longer than need be
  CHECK(display_width("\xED\xA0\x80\xF4\x90\x80\x80") == 7);  // half of a pair, and beyond the last one
  CHECK(character_at("\xED\x9F\xBF", 0).bytes == 3);
  CHECK(character_at("\xF4\x8F\xBF\xBF", 0).bytes == 4);
  CHECK(character_at("\xE6\x97\xA5", 0).bytes == 3);
  CHECK(character_at("\xE6\x97\xA5", 1).bytes == 1);
}

TEST_CASE("the ranges of widths are in order, and apart") {
  using namespace tandem::train::detail;
  const auto is_sound = [](const auto& ranges) {
    for (std::size_t i = 0; i < std::size(ranges); ++i) {
      if (ranges[i].first > ranges[i].last || (i > 0 && ranges[i].first <= ranges[i - 1].last)) return false;
    }
    return true;
  };
  CHECK(is_sound(kZeroWidth));
  CHECK(is_sound(kDoubleWidth));
  for (const CharacterRange& none : kZeroWidth) {
    CHECK(std::ranges::none_of(kDoubleWidth,
                               [&](const auto& two) { return two.first <= none.last && none.first <= two.last; }));
  }
}

TEST_CASE("lines are broken by what their characters take") {
  const std::string word = "\xE6\x97\xA5\xE6\x9C\xAC\xE8\xAA\x9E";  // 6 columns
  CHECK(wrapped(word + " " + word, 13) == word + " " + word);
  CHECK(wrapped(word + " " + word, 12) == word + "\n  " + word);
  const std::string four = word + " " + word + " " + word + " " + word;
  CHECK(wrapped(four, 13) == word + " " + word + "\n  " + word + "\n  " + word);
  CHECK(wrapped("e\xCC\x81 e\xCC\x81", 3) == "e\xCC\x81 e\xCC\x81");
}
