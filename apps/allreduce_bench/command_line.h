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

/// Whether --connectivity is among the words: what is asked before ranks wait for each other.
bool asks_for_connectivity(int argc, const char* const* argv);

/// The value of --iface, which MPI must know when it starts; "" for none.
std::string interface_asked_for(int argc, const char* const* argv);

/// Nothing where help was asked for, which is printed. `ranks`: of this run. Throws Error for what cannot be.
std::optional<CommandLine> read_command_line(int argc, const char* const* argv, int ranks);

}  // namespace tandem::allreduce_bench
