// One write, so that lines of several ranks and threads do not mix.
#include "tandem/train/stderr_line.h"

#include "tandem/train/terminal.h"
#include "tandem/train/wrapped_text.h"

#include <cstdio>

namespace tandem::train {

void print_to_stderr(const std::string& line) {
  std::fputs((wrapped(line, line_columns(stderr)) + "\n").c_str(), stderr);
}

}  // namespace tandem::train
