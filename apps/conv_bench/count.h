// What implementations move and launch, counted by the simulator instead of timed.
#pragma once

#include "apps/conv_bench/settings.h"
#include "apps/measure/kernel_counts.h"

#include <cstdio>

namespace tandem::conv_bench {

/// One contestant's pass over one layer.
struct Counts {
  std::uint64_t launches = 0, bytes_read = 0, bytes_written = 0;
};

/// Kernels and global memory, in sectors of 32 bytes for each request of a warp: what reaches the second-level cache if
/// the first one holds nothing.
Counts count(const std::function<void()>& work);

/// Verifies and counts all that was asked for. Prints a table to `out` and what was not counted to `problems`; writes
/// the JSON file. Returns the exit code: 1 if an implementation is wrong, else 0.
int run_count(const BenchSettings& settings, std::FILE* out, std::FILE* problems);

}  // namespace tandem::conv_bench
