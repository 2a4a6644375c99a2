// The command line of conv_bench.
#pragma once

#include "apps/conv_bench/settings.h"

#include <optional>

namespace tandem::conv_bench {

/// Nothing where help was asked for, which is then printed. Throws Error for anything that cannot be timed here. Sets
/// the number of threads, and measures the machine's ceilings where they are not given.
std::optional<BenchSettings> parse_command_line(int argc, const char* const* argv);

}  // namespace tandem::conv_bench
