// Options, and what they mean.
#pragma once

#include "apps/allreduce_bench/rows.h"

#include <optional>
#include <string>

namespace tandem::allreduce_bench {

struct CommandLine {
  BenchOptions options;
  bool as_json = false;
  std::string csv_file, svg_file;  ///< empty: none
  bool probes_connectivity = false;
  std::string interface;  ///< network interface of ranks of several hosts; empty: the libraries' choice
};

/// What must be known before MPI starts, and before ranks wait for each other: defaults where help is asked for, or the
/// words are wrong, of which read_command_line() tells.
CommandLine read_before_start(int argc, const char* const* argv);

/// Nothing where help was asked for, which is printed. `ranks`: of this run. Throws Error for what cannot be.
std::optional<CommandLine> read_command_line(int argc, const char* const* argv, int ranks);

}  // namespace tandem::allreduce_bench
