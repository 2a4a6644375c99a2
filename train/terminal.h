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

}  // namespace tandem::train
