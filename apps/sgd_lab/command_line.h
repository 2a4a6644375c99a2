#pragma once

#include "apps/sgd_lab/options.h"

#include <optional>

namespace tandem::sgd_lab {

/// Nothing where help was asked for and printed. Throws Error for a wrong option.
std::optional<LabOptions> read_command_line(int argc, const char* const* argv);

}  // namespace tandem::sgd_lab
