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

int ShownPieces::first_unreadable() const {
  for (int rank = 0; rank < window_.ranks(); ++rank)
    if (!cell(rank).offer.is_readable) return rank;
  return -1;
}

/// Of segments ranks may have parts of different ones.
bool ShownPieces::is_seen(int from) const {
  const DataPlace::Kind kind = cell(from).input.kind;
  return kind == DataPlace::Kind::block || (kind == DataPlace::Kind::address && peers_.is_here(from));
}

bool ShownPieces::are_seen() const {
  for (int rank = 0; rank < window_.ranks(); ++rank) {
    if (cell(rank).offer.bytes > Cell::bytes_behind_pieces(window_.ranks()) && !is_seen(rank)) return false;
  }
  return true;
}

const std::byte* ShownPieces::view(int from) const {
  Cell& shown = cell(from);
  const std::int64_t begin = piece(from, rank_).begin;
  if (shown.offer.bytes <= Cell::bytes_behind_pieces(window_.ranks()))
    return shown.data_behind_pieces(window_.ranks()) + begin;
  return is_seen(from) ? views_.view(from, shown.input, shown.input_block) + begin : nullptr;
}

void ShownPieces::take(int from, std::int64_t begin, void* into, std::int64_t bytes) const {
  if (const std::byte* const data = view(from); data != nullptr) {
    copy_block(data + begin, into, bytes);
  } else {
    peers_.read(from, cell(from).offer.address + static_cast<std::uint64_t>(piece(from, rank_).begin + begin), into,
                bytes);
  }
}

}  // namespace tandem::comm
