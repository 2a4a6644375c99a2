// Mappings of others' files.
#include "tandem/comm/transports/shared_memory/peer_blocks.h"

#include "tandem/core/error.h"
#include "tandem/core/memory_file.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <span>
#include <system_error>

namespace tandem::comm {

PeerBlocks::PeerBlocks(const std::vector<std::string>& handles, int rank) : peers_(handles.size()) {
  for (std::size_t peer = 0; peer < handles.size(); ++peer)
    if (peer != static_cast<std::size_t>(rank)) peers_[peer].file = open_file(parse_file_handle(handles[peer]));
}

PeerBlocks::~PeerBlocks() {
  for (Peer& peer : peers_)
    for (const auto& [layout, block] : peer.blocks) munmap(block.start, static_cast<std::size_t>(block.bytes));
}

std::byte* PeerBlocks::view(int rank, std::uint64_t layout, const CpuAllocator::BlockInFile& block,
                            std::int64_t offset) {
  Peer& peer = peers_[static_cast<std::size_t>(rank)];
  auto found = peer.blocks.find(layout);
  if (found == peer.blocks.end()) {
    if (peer.blocks.size() >= kMost / peers_.size()) drop_longer_unused_half(peer);
    const auto ranges = std::span(block.ranges).first(block.count);
    std::int64_t bytes = 0;
    for (const FileRange& range : ranges) bytes += range.bytes;
    std::byte* const start = map_file_ranges(peer.file.get(), ranges);
    require(start != nullptr, "cannot map a block of {} bytes of rank {}: {}", bytes, rank,
            std::system_category().message(errno));
    found = peer.blocks.emplace(layout, Block{start, bytes, 0}).first;
  }
  found->second.last_use = ++uses_;
  return found->second.start + offset;
}

void PeerBlocks::drop_longer_unused_half(Peer& peer) {
  std::vector<std::uint64_t> uses;
  for (const auto& [layout, block] : peer.blocks) uses.push_back(block.last_use);
  const auto middle = uses.begin() + std::ssize(uses) / 2;
  std::ranges::nth_element(uses, middle);
  std::erase_if(peer.blocks, [&](const auto& one) {
    if (one.second.last_use >= *middle) return false;
    munmap(one.second.start, static_cast<std::size_t>(one.second.bytes));
    return true;
  });
}

}  // namespace tandem::comm
