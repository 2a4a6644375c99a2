// The processes of a group's ranks on one host: whether they have ended, and what is in their memory.
#pragma once

#include "tandem/comm/backends/backend.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tandem::comm {

/// The process of each rank.
class PeerProcesses {
 public:
  PeerProcesses() = default;
  ~PeerProcesses();
  PeerProcesses(const PeerProcesses&) = delete;
  PeerProcesses& operator=(const PeerProcesses&) = delete;

  /// Collective. Where the system cannot tell, no process ever ends for has_ended().
  void exchange(Backend& backend);
  bool has_ended(int rank) const;
  /// For texts.
  std::int64_t process(int rank) const { return peer(rank).process; }
  /// Whether the rank is a thread of this process: its addresses can be used as they are.
  bool is_here(int rank) const { return peer(rank).is_here; }
  bool are_all_here() const;

  /// Copies memory of a rank's process into this one's, once, by the kernel (process_vm_readv); that process does
  /// nothing for it. Throws Error where the system refuses, and where there is no such memory.
  void read(int rank, std::uint64_t address, void* into, std::int64_t bytes) const;

 private:
  struct Peer {
    std::int64_t process = 0;
    bool is_here = false;
    int file = -1;
  };
  const Peer& peer(int rank) const { return peers_[static_cast<std::size_t>(rank)]; }

  std::vector<Peer> peers_;
};

/// Whether the system lets other processes read this memory of this one, where they may read any: not all that a driver
/// maps, as page-locked memory may be.
bool is_readable_by_others(std::uint64_t address, std::int64_t bytes);

/// "" where every rank can read the memory of all others, which each of them tries; else what the first rank that
/// cannot says, the same on all. Collective.
std::string obstacle_to_reading(Backend& backend, const PeerProcesses& peers);

}  // namespace tandem::comm
