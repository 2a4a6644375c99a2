// Text inside XML and HTML.
#pragma once

#include <string>
#include <string_view>

namespace tandem::train::plot {

/// `text` as text or as the value of a quoted attribute: & < > " ' are written as references; bytes that are no UTF-8,
/// and control characters, which XML has no way to write, as U+FFFD. Tabs and line ends stay.
std::string escaped(std::string_view text);

/// The number of bytes of the UTF-8 character that begins at `at`, which must be inside; 0 if none does.
std::size_t utf8_length(std::string_view text, std::size_t at);

}  // namespace tandem::train::plot
