// References for what has a meaning in markup.
#include "tandem/train/plot/markup.h"

#include <cstdint>

namespace tandem::train::plot {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

unsigned byte_at(std::string_view text, std::size_t at) { return static_cast<unsigned char>(text[at]); }

bool is_allowed(std::uint32_t code) {
  const bool is_surrogate = code >= 0xD800 && code <= 0xDFFF;
  const bool is_control = code < 0x20 && code != '\t' && code != '\n';
  return !is_control && code != 0x7F && !is_surrogate && code != 0xFFFE && code != 0xFFFF && code <= 0x10FFFF;
}

}  // namespace

std::size_t utf8_length(std::string_view text, std::size_t at) {
  const unsigned first = byte_at(text, at);
  if (first < 0x80) return is_allowed(first) ? 1 : 0;
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || at + length > text.size()) return 0;
  std::uint32_t code = first & (0xFFU >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    const unsigned next = byte_at(text, at + i);
    if ((next & 0xC0U) != 0x80U) return 0;
    code = code << 6U | (next & 0x3FU);
  }
  const std::uint32_t least = length == 4 ? 0x10000U : length == 3 ? 0x800U : 0x80U;
  return code >= least && is_allowed(code) ? length : 0;
}

std::string escaped(std::string_view text) {
  std::string safe;
  safe.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_length(text, at);
    if (length == 0) {
      safe += kReplacement;
      ++at;
      continue;
    }
    switch (text[at]) {
      case '&':
        safe += "&amp;";
        break;
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '"':
        safe += "&quot;";
        break;
      case '\'':
        safe += "&#39;";
        break;
      default:
        safe += text.substr(at, length);
    }
    at += length;
  }
  return safe;
}

}  // namespace tandem::train::plot
