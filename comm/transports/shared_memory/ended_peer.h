// Which rank's process has ended, for a rank that waits for others.
#pragma once

#include "tandem/comm/transports/shared_memory/peer_processes.h"

#include <chrono>
#include <cstdint>
#include <string>

namespace tandem::comm {

/// Looks now and then. Where several processes have ended it is the one that had ended first, as far as this rank has
/// seen: others may have ended because of it.
class EndedPeer {
 public:
  /// For rank `rank` of `ranks`. `peers` outlives this.
  EndedPeer(const PeerProcesses& peers, int rank, int ranks) : peers_(peers), rank_(rank), ranks_(ranks) {}

  /// A rank that has ended some time ago, of those for which `waits_for(rank)` is true; -1: none, as far as is known.
  /// A launcher that ends all ranks when one has ended is quicker than this, and its text says more.
  template <typename Predicate>
  int look(const Predicate& waits_for) {
    if (++looks_ % kLooksBetween != 0) return -1;
    if (first_ >= 0 && !waits_for(first_)) first_ = -1;
    for (int other = 0; first_ < 0 && other < ranks_; ++other) {
      if (other == rank_ || !waits_for(other) || !peers_.has_ended(other)) continue;
      first_ = other;
      since_ = Clock::now();
    }
    return first_ >= 0 && Clock::now() - since_ >= kPatience ? first_ : -1;
  }
  /// "rank 1 (process 4711) has ended, and rank 0 waits for it"
  std::string text_of(int ended) const;

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr int kLooksBetween = 1000;
  static constexpr std::chrono::seconds kPatience{2};

  const PeerProcesses& peers_;
  int rank_, ranks_;
  int first_ = -1;  // that had ended; below 0: none
  Clock::time_point since_;
  std::uint64_t looks_ = 0;
};

}  // namespace tandem::comm
