// What the terminal behind standard error can show.
#pragma once

#include <cstdio>

namespace tandem::train {

struct Terminal {
  bool interactive = false;  ///< a screen that can redraw a line
  int width = 80;            ///< columns
  bool color = false;
  bool unicode = false;
};

/// Asks the system: isatty and TIOCGWINSZ for `stream`, then the controlling terminal and COLUMNS for the width;
/// NO_COLOR (no-color.org) and TERM=dumb switch colours off; LC_ALL, LC_CTYPE and LANG tell whether UTF-8 is shown.
Terminal query_terminal(std::FILE* stream);

/// Columns to which lines for `stream` are broken: those of the terminal that it is, or COLUMNS where that does not
/// tell. 0 where it is none: lines of files and pipes stay whole. `is_seen`: the user says that a terminal is at the
/// other end of a pipe, as a launcher puts behind its ranks; then those of the controlling terminal.
int line_columns(std::FILE* stream, bool is_seen = false);

}  // namespace tandem::train
