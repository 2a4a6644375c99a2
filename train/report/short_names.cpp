// Words that are the same in all names go first, then middles.
#include "tandem/train/report/short_names.h"

#include "tandem/train/plot/markup.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

namespace tandem::train::report {
namespace {

using Names = std::vector<std::string>;
using Fits = std::function<bool(const std::string&)>;

constexpr std::string_view kEllipsis = "\xE2\x80\xA6";

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Letters, digits, and bytes of longer characters. A point is a part of a number.
bool is_of_word(std::string_view text, std::size_t at) {
  const char c = text[at];
  if (c == '.') return at > 0 && at + 1 < text.size() && is_digit(text[at - 1]) && is_digit(text[at + 1]);
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || static_cast<unsigned char>(c) >= 0x80;
}

/// Words, and the single characters between them.
Names words_of(const std::string& name) {
  Names words;
  bool in_word = false;
  for (std::size_t at = 0; at < name.size(); ++at) {
    const bool is_word = is_of_word(name, at);
    if (!is_word || !in_word) words.emplace_back();
    words.back() += name[at];
    in_word = is_word;
  }
  return words;
}

/// The words that are to be kept, and "…" for each row of the others, unless these are a single character.
std::string joined(const Names& words, const std::vector<bool>& is_kept) {
  std::string text, left_out;
  for (std::size_t i = 0; i <= words.size(); ++i) {
    if (i < words.size() && !is_kept[i]) {
      left_out += words[i];
      continue;
    }
    text += left_out.size() > 1 ? std::string(kEllipsis) : left_out;
    left_out.clear();
    if (i < words.size()) text += words[i];
  }
  return text;
}

/// Of names with as many words each: those words that are not the same in all; with `before`, also the word before a
/// number, which says what that is of.
Names without_common_words(const std::vector<Names>& all, bool before) {
  std::vector<bool> differs(all.front().size());
  for (std::size_t i = 0; i < differs.size(); ++i)
    differs[i] = std::ranges::any_of(all, [&](const Names& words) { return words[i] != all.front()[i]; });
  std::vector<bool> is_kept = differs;
  for (std::size_t i = 2; before && i < differs.size(); ++i) {
    if (differs[i] && is_digit(all.front()[i].front())) is_kept[i - 1] = is_kept[i - 2] = true;
  }
  Names names;
  for (const Names& words : all) names.push_back(joined(words, is_kept));
  return names;
}

/// Without the words that all begin with, and those that all end with; with `before`, as above.
Names without_common_ends(const std::vector<Names>& all, bool before) {
  std::size_t least = all.front().size(), first = 0, last = 0;
  for (const Names& words : all) least = std::min(least, words.size());
  const auto same = [&](const auto& word) {
    return std::ranges::all_of(all, [&](const Names& words) { return word(words) == word(all.front()); });
  };
  while (first < least && same([&](const Names& words) { return words[first]; })) ++first;
  while (first + last < least && same([&](const Names& words) { return words[words.size() - 1 - last]; })) ++last;
  const auto begins_with_number = [&](const Names& words) {
    return first < words.size() && is_digit(words[first].front());
  };
  if (before && first >= 2 && std::ranges::any_of(all, begins_with_number)) first -= 2;
  Names names;
  for (const Names& words : all) {
    std::vector<bool> is_kept(words.size());
    std::fill(is_kept.begin() + static_cast<std::ptrdiff_t>(first), is_kept.end() - static_cast<std::ptrdiff_t>(last),
              true);
    names.push_back(joined(words, is_kept));
  }
  return names;
}

std::string without_middle(const std::string& name, const Fits& fits) {
  Names characters;
  for (std::size_t at = 0; at < name.size(); at += characters.back().size())
    characters.push_back(name.substr(at, std::max<std::size_t>(1, plot::utf8_length(name, at))));
  std::string text = name;
  for (std::size_t kept = characters.size(); kept-- > 0 && !fits(text);) {
    const std::size_t end = characters.size() - kept / 2;
    text.clear();
    for (std::size_t i = 0; i < kept - kept / 2; ++i) text += characters[i];
    text += kEllipsis;
    for (std::size_t i = end; i < characters.size(); ++i) text += characters[i];
  }
  return text;
}

/// What is the same in all names of as many words that begin alike is left out of each.
Names by_families(const Names& names, const std::vector<std::size_t>& long_ones, bool before) {
  std::map<std::pair<std::size_t, std::string>, std::vector<std::size_t>> families;
  for (const std::size_t i : long_ones) {
    const Names words = words_of(names[i]);
    families[{words.size(), words.front()}].push_back(i);
  }
  Names shorter = names;
  for (const auto& [key, members] : families) {
    if (members.size() < 2) continue;
    std::vector<Names> all;
    for (const std::size_t i : members) all.push_back(words_of(names[i]));
    const Names without = without_common_words(all, before);
    for (std::size_t k = 0; k < members.size(); ++k) shorter[members[k]] = without[k];
  }
  return shorter;
}

}  // namespace

std::vector<std::string> short_names(const std::vector<std::string>& names, const Fits& fits) {
  const std::size_t different = std::set<std::string>(names.begin(), names.end()).size();
  const auto are_good = [&](const Names& tried) {
    return std::ranges::all_of(tried, fits) && std::set<std::string>(tried.begin(), tried.end()).size() == different;
  };
  std::vector<std::size_t> long_ones;
  std::vector<Names> words;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (fits(names[i])) continue;
    long_ones.push_back(i);
    words.push_back(words_of(names[i]));
  }
  if (long_ones.empty()) return names;
  for (const bool before : {true, false}) {
    Names tried = names;
    const Names inner = long_ones.size() > 1 ? without_common_ends(words, before) : Names();
    for (std::size_t k = 0; k < inner.size(); ++k) tried[long_ones[k]] = inner[k];
    if (are_good(tried)) return tried;
    tried = by_families(names, long_ones, before);
    if (are_good(tried)) return tried;
  }
  Names shorter = by_families(names, long_ones, false);
  for (std::string& name : shorter) name = without_middle(name, fits);
  if (are_good(shorter)) return shorter;
  // All of them, so that they are of one style.
  for (std::size_t i = 0; i < shorter.size(); ++i) {
    std::string numbered = fmt::format("{}: ", i + 1);
    const std::string number = numbered;
    numbered += without_middle(shorter[i], [&](const std::string& name) { return fits(number + name); });
    shorter[i] = std::move(numbered);
  }
  return shorter;
}

}  // namespace tandem::train::report
