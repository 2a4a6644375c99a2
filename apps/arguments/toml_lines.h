// Lines of TOML files that the parser may be given.
#pragma once

#include <string>

namespace tandem::apps {

/// Throws Error, "FILE:LINE: what it is; write one 'name = value' per line, text in quotes", for lines that toml++
/// takes for faults of its own, or that would exhaust its stack: long ones, sections without a name, tables in braces,
/// texts in three quotes, quotes and brackets right behind other characters, '=' in a list or behind a value, dates,
/// characters beyond ASCII outside of quotes.
void check_toml_lines(const std::string& text, const std::string& file);

}  // namespace tandem::apps
