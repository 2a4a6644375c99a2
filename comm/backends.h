// The backends by name: one row each, read by make_process_group, by options and help of programs, and by docs.
// Example:
//     std::vector<std::string_view> usable;
//     for (const BackendEntry& entry : backends()) {
//       if (entry.missing().empty()) usable.push_back(entry.name);
//     }
//     const std::string_view first = usable.front();  // "auto"
#pragma once

#include "tandem/comm/process_group.h"

#include <array>
#include <span>

namespace tandem::comm {

/// For whom a backend is made.
struct BackendRequest {
  MpiEnvironment& environment;        ///< where MPI runs, if it does
  Device device;                      ///< where this rank computes
  std::string algorithm = "auto";     ///< GroupOptions::algorithm
  std::string network = {};           ///< GroupOptions::network
  std::unique_ptr<ProcessGroup> mpi;  ///< all ranks, by MPI's collectives; null for one rank that did without so far
};

/// How a backend carries out each collective, in a few words, by CollectiveKind; empty for what it does not.
using CollectiveWays = std::array<std::string_view, kCollectiveKinds>;

/// One backend that can be asked for. `make` is collective and may take request.mpi; it throws AgreedError where the
/// backend cannot be used by these ranks.
struct BackendEntry {
  std::string_view name;          ///< "native": what `--backend` takes
  std::string_view what;          ///< what it is, in a few words
  std::string_view needs;         ///< libraries and devices; empty if nothing
  std::string_view (*missing)();  ///< what this build lacks of `needs`, in one line; empty if nothing
  std::string_view instead;       ///< the backend to choose where something is missing
  std::unique_ptr<ProcessGroup> (*make)(BackendRequest& request);  ///< makes a group over it
  const CollectiveWays* ways = nullptr;                            ///< null for a choice between others
  std::string_view on_gpus = {};                                   ///< how it takes tensors of GPUs
  std::string_view progress = {};     ///< how works under way move on while their rank computes
  std::string_view former_name = {};  ///< a name that it had before, and that still stands for it; mostly empty
};

/// All of them, "auto" first.
std::span<const BackendEntry> backends();

/// Their names, in that order.
std::vector<std::string> backend_names();

/// What GroupOptions::algorithm can be: "auto", "shared-memory", "by-cost" and the rows of all_reduce_algorithms()
/// (comm/schedules/all_reduce_algorithms.h).
std::vector<std::string> algorithm_names();

/// What GroupOptions::progress can be: "auto", "thread" and "poll".
std::vector<std::string> progress_names();

/// What a backend is called now whose former name this is ("native" for "ring"); any other name as it is.
std::string current_backend_name(std::string_view name);

}  // namespace tandem::comm
