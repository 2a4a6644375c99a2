// Blocks of the CPU's memory in other processes, mapped here.
#pragma once

#include "tandem/comm/backends/backend.h"
#include "tandem/comm/transports/shared_memory/file_handle.h"
#include "tandem/core/cpu_allocator.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace tandem::comm {

/// What CpuAllocator::share_blocks() lets the ranks of one host map. A block is mapped when it is first looked at, and
/// stays mapped: ranks look at the same ones again and again. It goes when a block is looked at that has taken pages of
/// it; where there are too many, or the system maps no more, those go that were not used for longest.
class PeerBlocks {
 public:
  /// Ranges of blocks of all ranks together: each is a mapping, of which a process has 65,530 by default.
  static constexpr std::size_t kMost = 8192;

  /// Opens the files of all ranks but this one, whose handles these are.
  PeerBlocks(const std::vector<std::string>& handles, int rank);
  ~PeerBlocks();
  PeerBlocks(const PeerBlocks&) = delete;
  PeerBlocks& operator=(const PeerBlocks&) = delete;

  /// What is `offset` bytes into a block of another rank, as long as it is one, and until two more of that rank were
  /// looked at. Throws Error where the system maps no more.
  std::byte* view(int rank, std::uint64_t layout, const CpuAllocator::BlockInFile& block, std::int64_t offset);
  /// How many blocks of a rank are mapped.
  std::size_t mapped(int rank) const { return peers_[static_cast<std::size_t>(rank)].blocks.size(); }

 private:
  struct Block {
    std::byte* start = nullptr;
    CpuAllocator::BlockInFile in_file = {};
    std::uint64_t last_use = 0;
  };
  using Blocks = std::map<std::uint64_t, Block>;  // by their layout
  struct Peer {
    OwnedFile file;
    Blocks blocks;
    std::map<std::int64_t, Blocks::iterator> ranges;  // of these, by where they begin in the file; none overlap
  };
  static void drop(Peer& peer, Blocks::iterator block);
  static void drop_overlapping(Peer& peer, const CpuAllocator::BlockInFile& block);
  static void drop_all_but_last(Peer& peer, std::size_t count);
  std::byte* map(Peer& peer, const CpuAllocator::BlockInFile& block);

  std::vector<Peer> peers_;
  std::uint64_t uses_ = 0;
};

/// The blocks, or null and the same reason on all ranks.
struct OpenedBlocks {
  std::unique_ptr<PeerBlocks> blocks;
  std::string obstacle;
};

/// Has this process share its blocks, and opens those of the others. `obstacle`: why this rank does not want to, or "".
/// Collective.
OpenedBlocks open_peer_blocks(Backend& backend, std::string obstacle = "");

}  // namespace tandem::comm
