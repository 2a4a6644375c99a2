// Layout of the help pages of all programs: a column of names, a column of texts, as wide as the terminal.
#pragma once

#include <string>
#include <string_view>

namespace tandem::apps {

/// Columns that a help page takes: those of the terminal on standard output, else what COLUMNS says, and 80 where
/// neither tells. At most 80: wider lines are hard to read.
int help_columns();

/// `text` in lines of at most `columns`, the last one with its line end, too.
std::string help_paragraph(std::string_view text, int columns);

/// A name, and behind it the words of `text`; on narrow pages below it.
std::string help_entry(const std::string& name, const std::string& text, int columns);

/// A command line as an example, and what it is for, "" for none: behind it, or above it where it does not fit.
std::string help_example(const std::string& command, const std::string& comment, int columns);

}  // namespace tandem::apps
