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
/// stays mapped: ranks look at the same ones again and again. Where there are too many, those go that were not used for
/// longest.
class PeerBlocks {
 public:
  /// Of all ranks together: a process has 65,530 mappings by default.
  static constexpr std::size_t kMost = 8192;

  /// Opens the files of all ranks but this one, whose handles these are.
  PeerBlocks(const std::vector<std::string>& handles, int rank);
  ~PeerBlocks();
  PeerBlocks(const PeerBlocks&) = delete;
  PeerBlocks& operator=(const PeerBlocks&) = delete;

  /// What is `offset` bytes into a block of another rank, until some more of its blocks were looked at: of `ranks`,
  /// kMost / ranks / 2. Throws Error where the system maps no more.
  std::byte* view(int rank, std::uint64_t layout, const CpuAllocator::BlockInFile& block, std::int64_t offset);
  /// How many blocks of a rank are mapped.
  std::size_t mapped(int rank) const { return peers_[static_cast<std::size_t>(rank)].blocks.size(); }

 private:
  struct Block {
    std::byte* start = nullptr;
    std::int64_t bytes = 0;
    std::uint64_t last_use = 0;
  };
  struct Peer {
    OwnedFile file;
    std::map<std::uint64_t, Block> blocks;  // by their layout
  };
  static void drop_longer_unused_half(Peer& peer);

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
