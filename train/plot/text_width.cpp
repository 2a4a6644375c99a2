// Letters fall into few classes of width.
#include "tandem/train/plot/text_width.h"

#include "tandem/train/plot/markup.h"

#include <algorithm>

namespace tandem::train::plot {
namespace {

constexpr std::string_view kEllipsis = "\xE2\x80\xA6";

/// In units of the font's size. Characters of more than two bytes may be as wide as they are high.
double width_of(std::string_view character) {
  if (character.size() > 2) return 1.0;
  if (character.size() == 2) return 0.6;
  const char letter = character.front();
  if (std::string_view("ijl|'!.,:;It").find(letter) != std::string_view::npos) return 0.28;
  if (std::string_view("fr()[]{}/\\ -\"").find(letter) != std::string_view::npos) return 0.35;
  if (std::string_view("mwMW@%").find(letter) != std::string_view::npos) return 0.88;
  if (letter >= 'A' && letter <= 'Z') return 0.7;
  return 0.57;
}

}  // namespace

double text_width(std::string_view text, double size) {
  double width = 0.0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = std::max<std::size_t>(1, utf8_length(text, at));
    width += width_of(text.substr(at, length));
    at += length;
  }
  return width * size;
}

std::string cut_to_width(std::string_view text, double size, double width) {
  if (text_width(text, size) <= width) return std::string(text);
  const double room = width / size - 0.6;  // that of the ellipsis
  double used = 0.0;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t length = std::max<std::size_t>(1, utf8_length(text, at));
    used += width_of(text.substr(at, length));
    if (used > room) break;
    at += length;
  }
  return std::string(text.substr(0, at)) + std::string(kEllipsis);
}

}  // namespace tandem::train::plot
