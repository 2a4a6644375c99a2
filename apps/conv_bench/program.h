// The program behind the command line.
#pragma once

#include "apps/conv_bench/settings.h"

#include <cstdio>

namespace tandem::conv_bench {

/// Times or counts what was asked for, prints the table to `out` and what was left out to `problems`, and writes the
/// files. Returns the exit code: 1 if an implementation is wrong, else 0. Throws Error for files that cannot be
/// written, before timing.
int run_program(const BenchSettings& settings, std::FILE* out, std::FILE* problems);

}  // namespace tandem::conv_bench
