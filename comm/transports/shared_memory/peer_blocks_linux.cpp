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

namespace {

using BlockInFile = CpuAllocator::BlockInFile;

std::span<const FileRange> ranges_of(const BlockInFile& block) { return std::span(block.ranges).first(block.count); }

std::int64_t bytes_of(const BlockInFile& block) {
  std::int64_t bytes = 0;
  for (const FileRange& range : ranges_of(block)) bytes += range.bytes;
  return bytes;
}

void unmap(const BlockInFile& block, std::byte* start) { munmap(start, static_cast<std::size_t>(bytes_of(block))); }

}  // namespace

PeerBlocks::PeerBlocks(const std::vector<std::string>& handles, int rank) : peers_(handles.size()) {
  for (std::size_t peer = 0; peer < handles.size(); ++peer)
    if (peer != static_cast<std::size_t>(rank)) peers_[peer].file = open_file(parse_file_handle(handles[peer]));
}

PeerBlocks::~PeerBlocks() {
  for (Peer& peer : peers_)
    for (const auto& [place, block] : peer.blocks) unmap(place, block.start);
}

std::byte* PeerBlocks::view(int rank, const CpuAllocator::PlaceInFile& place) {
  Peer& peer = peers_[static_cast<std::size_t>(rank)];
  auto found = peer.blocks.find(place.block);
  if (found == peer.blocks.end()) {
    if (peer.blocks.size() >= kMost / peers_.size()) drop_longer_unused_half(peer);
    std::byte* const start = map_file_ranges(peer.file.get(), ranges_of(place.block));
    require(start != nullptr, "cannot map a block of {} bytes of rank {}: {}", bytes_of(place.block), rank,
            std::system_category().message(errno));
    found = peer.blocks.emplace(place.block, Block{start, 0}).first;
  }
  found->second.last_use = ++uses_;
  return found->second.start + place.offset;
}

void PeerBlocks::drop_longer_unused_half(Peer& peer) {
  std::vector<std::uint64_t> uses;
  for (const auto& [place, block] : peer.blocks) uses.push_back(block.last_use);
  const auto middle = uses.begin() + std::ssize(uses) / 2;
  std::ranges::nth_element(uses, middle);
  std::erase_if(peer.blocks, [&](const auto& one) {
    if (one.second.last_use >= *middle) return false;
    unmap(one.first, one.second.start);
    return true;
  });
}

}  // namespace tandem::comm
