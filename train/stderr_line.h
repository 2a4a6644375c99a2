// What programs say on standard error.
#pragma once

#include <string>

namespace tandem::train {

/// Writes a line, given without its end. Where standard error is a terminal it is broken to its width (wrapped());
/// in files and pipes lines stay whole.
void print_to_stderr(const std::string& line);

}  // namespace tandem::train
