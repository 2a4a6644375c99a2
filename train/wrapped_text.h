// Lines broken to the width of a terminal.
#pragma once

#include <string>
#include <string_view>

namespace tandem::train {

/// `text` with each line that is wider than `columns` broken at blanks, if possible where there are two. What follows
/// stands below the text behind the label of a summary's line ("  ranks    2 x 1 thread"), else two columns further in
/// than the line. A line that begins with an option is for a shell (wrapped_command()). A word that is wider than a
/// line, such as a path, stays whole. 0 columns: nothing is broken. Example:
///     const std::string text = wrapped("  ranks    2 x 1 thread on cpu, backend native\n", 40);
///     std::fputs(text.c_str(), stdout);  // the second line is "           native"
std::string wrapped(std::string_view text, int columns);

/// The same of one command line, which is broken before options, behind backslashes.
std::string wrapped_command(std::string_view line, int columns);

}  // namespace tandem::train
