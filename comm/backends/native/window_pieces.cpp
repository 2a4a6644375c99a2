// The table of pieces at the payload's begin, and the data behind it.
#include "tandem/comm/backends/native/window_pieces.h"

#include <algorithm>
#include <functional>

namespace tandem::comm {

void show_pieces(Cell& cell, std::span<const Block> pieces) {
  const int ranks = static_cast<int>(pieces.size());
  const std::byte *begin = nullptr, *end = nullptr;
  for (const Block& block : pieces) {
    if (block.bytes == 0) continue;
    if (begin == nullptr || std::less<>()(block.data, begin)) begin = block.data;
    if (end == nullptr || std::less<>()(end, block.data + block.bytes)) end = block.data + block.bytes;
  }
  cell.offer.address = reinterpret_cast<std::uintptr_t>(begin);
  cell.offer.bytes = end - begin;
  for (std::size_t rank = 0; rank < pieces.size(); ++rank) {
    const Block& block = pieces[rank];
    cell.pieces()[rank] = {block.bytes == 0 ? 0 : block.data - begin, block.bytes};
  }
  if (cell.offer.bytes <= Cell::bytes_behind_pieces(ranks))
    copy_block(begin, cell.data_behind_pieces(ranks), cell.offer.bytes);
}

std::int64_t ShownPieces::most_bytes() const {
  std::int64_t most = 0;
  for (int rank = 0; rank < window_.ranks(); ++rank) most = std::max(most, cell(rank).offer.bytes);
  return most;
}

void ShownPieces::take(int from, void* into) const {
  Cell& shown = cell(from);
  const auto [begin, bytes] = piece(from, rank_);
  const std::uint64_t address = shown.offer.address + static_cast<std::uint64_t>(begin);
  if (shown.offer.bytes <= Cell::bytes_behind_pieces(window_.ranks())) {
    copy_block(shown.data_behind_pieces(window_.ranks()) + begin, into, bytes);
  } else if (peers_.is_here(from)) {
    copy_block(reinterpret_cast<const void*>(address), into, bytes);
  } else {
    peers_.read(from, address, into, bytes);
  }
}

}  // namespace tandem::comm
