// Which ranks reach each other by messages, and how fast: to be asked before anything waits for all of them.
// Example:
//     #include "tandem/comm/launch/mpi_environment.h"
//     MpiEnvironment environment;
//     const Connectivity all = probe_connectivity(environment);
//     if (environment.rank() == 0) std::printf("%s", text_of(all).c_str());
#pragma once

#include "tandem/comm/transports/transport.h"

#include <chrono>
#include <string>
#include <vector>

namespace tandem::comm {

class MpiEnvironment;

/// What is known of a pair of ranks. `unknown`: neither of them could tell this rank.
enum class Reach : std::uint8_t { unknown, yes, no };

/// How a message travels between two ranks, nothing else being sent: zeros where that was not measured.
struct PairSpeed {
  double seconds = 0.0;           ///< of a message of 8 bytes, one way: the least of many
  double bytes_per_second = 0.0;  ///< of a large message, one way
};

/// As one rank knows it: all pairs that itself or a rank that it reaches has tried.
struct Connectivity {
  int rank = 0;
  std::vector<std::string> hosts;           ///< by rank; "" where it is not known
  std::vector<int> places;                  ///< of ranks among those of their hosts; -1 where it is not known
  std::vector<std::vector<Reach>> reaches;  ///< by rank, and rank
  /// On rank 0 alone, where all reach each other: the speeds between these ranks, by place in `measured`.
  std::vector<int> measured;
  std::vector<std::vector<PairSpeed>> speeds;

  int size() const { return static_cast<int>(hosts.size()); }
  /// Whether all ranks reach each other: known to all ranks alike.
  bool is_complete() const;
};

/// This rank among all.
struct ProbedRank {
  int rank = 0, size = 1;
  std::string host;
  int place = 0;  ///< among those of its host
};

struct ProbeOptions {
  std::chrono::milliseconds deadline{3000};  ///< for an answer
  /// With more ranks, speeds are those between the first ranks of hosts.
  int most_ranks = 16;
};

/// Each rank asks each other one for an answer. Then ranks tell those that answer what they have found, and where all
/// have answered to all, pairs of ranks take turns for their speed. Collective, but no rank waits for one that cannot
/// answer for longer than two deadlines. Where not all reach each other, messages are still under way, and the
/// transport must be left alone until the process ends. Throws Error where a rank that had answered no longer does.
Connectivity probe_connectivity(const std::shared_ptr<Transport>& transport, const ProbedRank& mine,
                                const ProbeOptions& options = {});

/// The same between the ranks of a run, by MPI's messages.
Connectivity probe_connectivity(MpiEnvironment& environment, const ProbeOptions& options = {});

/// Tables of at most 16 columns: who reaches whom, or speeds.
std::string text_of(const Connectivity& all);

/// "rank 0 (host alpha) gets no answer from ranks 2, 3 (host beta) within 3 s", of `all.rank`; "" where all answer.
std::string complaint_of(const Connectivity& all, const ProbeOptions& options = {});

/// A pair of ranks, as programs are told it.
struct PairReport {
  int from = 0, to = 0;
  Reach reach = Reach::unknown;
  PairSpeed speed = {};
};

/// All pairs, the lower rank first; with `measured` ranks theirs alone.
std::vector<PairReport> pairs_of(const Connectivity& all);

}  // namespace tandem::comm
