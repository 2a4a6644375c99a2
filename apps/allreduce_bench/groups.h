// The groups of ranks that are compared: one for each backend, and for each algorithm.
#pragma once

#include "apps/allreduce_bench/rows.h"
#include "tandem/comm/launch/mpi_environment.h"
#include "tandem/comm/process_group.h"

#include <memory>
#include <string>
#include <vector>

namespace tandem::allreduce_bench {

/// A group, what its rows are called, and its algorithm of messages, if it has one.
struct NamedGroup {
  std::string name;
  std::shared_ptr<comm::ProcessGroup> group;
  std::string algorithm = {};
  bool is_algorithm = false;  ///< of --algorithms: for all_reduce alone

  /// Whether tensors that all ranks see are timed as well.
  bool has_shared_tensors() const { return name == "native" || name == "threads"; }
};

/// Whether so named algorithms are schedules of messages, whose time can be predicted.
inline bool is_of_messages(std::string_view algorithm) { return algorithm != "auto" && algorithm != "shared-memory"; }

/// Collective. Throws AgreedError for a backend that these ranks cannot use.
std::vector<NamedGroup> make_groups(comm::MpiEnvironment& environment, const BenchOptions& options);

}  // namespace tandem::allreduce_bench
