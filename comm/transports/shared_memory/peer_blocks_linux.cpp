// Mappings of others' files.
#include "tandem/comm/transports/shared_memory/peer_blocks.h"

#include "tandem/core/error.h"
#include "tandem/core/memory_file.h"
#include "tandem/core/page_block.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <iterator>
#include <limits>
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

/// Whether it is one of large pages for its owner.
bool has_large_pages(const BlockInFile& block) {
  return std::ranges::all_of(ranges_of(block), [](const FileRange& range) {
    return range.begin % PageBlock::kPage == 0 && range.bytes % PageBlock::kPage == 0;
  });
}

}  // namespace

PeerBlocks::PeerBlocks(const std::vector<std::string>& handles, int rank) : peers_(handles.size()) {
  for (std::size_t peer = 0; peer < handles.size(); ++peer)
    if (peer != static_cast<std::size_t>(rank)) peers_[peer].file = open_file(parse_file_handle(handles[peer]));
}

PeerBlocks::~PeerBlocks() {
  for (Peer& peer : peers_) drop_all_but_last(peer, 0);
}

std::byte* PeerBlocks::view(int rank, std::uint64_t layout, const BlockInFile& block, std::int64_t offset) {
  Peer& peer = peers_[static_cast<std::size_t>(rank)];
  auto found = peer.blocks.find(layout);
  if (found == peer.blocks.end()) {
    drop_overlapping(peer, block);
    if (peer.ranges.size() >= kMost / peers_.size()) drop_all_but_last(peer, peer.blocks.size() / 2);
    std::byte* const start = map(peer, block);
    require(start != nullptr, "cannot map a block of {} bytes of rank {}: {}", bytes_of(block), rank,
            std::system_category().message(errno));
    found = peer.blocks.emplace(layout, Block{start, block, 0}).first;
    for (const FileRange& range : ranges_of(block)) peer.ranges.emplace(range.begin, found);
  }
  found->second.last_use = ++uses_;
  return found->second.start + offset;
}

std::byte* PeerBlocks::map(Peer& peer, const BlockInFile& block) {
  std::byte* start = map_file_ranges(peer.file.get(), ranges_of(block));
  if (start == nullptr) {
    for (Peer& each : peers_) drop_all_but_last(each, 2);  // what a collective has of a rank: an input, an output
    start = map_file_ranges(peer.file.get(), ranges_of(block));
  }
  // What this rank writes first, as a part of a result, are to be such pages, too.
  if (start != nullptr && has_large_pages(block))
    madvise(start, static_cast<std::size_t>(bytes_of(block)), MADV_HUGEPAGE);
  return start;
}

void PeerBlocks::drop(Peer& peer, Blocks::iterator block) {
  const BlockInFile& in_file = block->second.in_file;
  for (const FileRange& range : ranges_of(in_file)) peer.ranges.erase(range.begin);
  munmap(block->second.start, static_cast<std::size_t>(bytes_of(in_file)));
  peer.blocks.erase(block);
}

/// A place in the file is in one block at a time: where this one has it, those are blocks no more.
void PeerBlocks::drop_overlapping(Peer& peer, const BlockInFile& block) {
  for (const FileRange& range : ranges_of(block)) {
    auto before = peer.ranges.lower_bound(range.begin + range.bytes);
    while (before != peer.ranges.begin()) {
      const auto other = std::prev(before);
      const auto ranges = ranges_of(other->second->second.in_file);
      const auto found = std::ranges::find(ranges, other->first, &FileRange::begin);
      if (found->begin + found->bytes <= range.begin) break;
      drop(peer, other->second);
      before = peer.ranges.lower_bound(range.begin + range.bytes);
    }
  }
}

/// Those that were used last stay.
void PeerBlocks::drop_all_but_last(Peer& peer, std::size_t count) {
  if (peer.blocks.size() <= count) return;
  std::vector<std::uint64_t> uses;
  for (const auto& [layout, block] : peer.blocks) uses.push_back(block.last_use);
  const auto middle = uses.end() - static_cast<std::ptrdiff_t>(count);
  std::ranges::nth_element(uses, middle);
  const std::uint64_t first_kept = count > 0 ? *middle : std::numeric_limits<std::uint64_t>::max();
  for (auto next = peer.blocks.begin(); next != peer.blocks.end();)
    if (const auto block = next++; block->second.last_use < first_kept) drop(peer, block);
}

}  // namespace tandem::comm
