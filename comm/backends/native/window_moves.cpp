// Pieces: from the cells, from the memory that they are in, and by segments.
#include "tandem/comm/backends/native/window_engine.h"
#include "tandem/core/error.h"

#include <algorithm>

namespace tandem::comm {

namespace {

using Stage = WindowOperation::Stage;

/// The part of a piece that is in a segment, of the memory that it is a part of.
struct PieceInSegment {
  PieceInSegment(const Piece& piece, std::int64_t segment)
      : begin(std::max(piece.begin, segment * Window::kSegmentBytes)),
        bytes(std::min(piece.begin + piece.bytes, (segment + 1) * Window::kSegmentBytes) - begin) {}

  std::int64_t begin, bytes;  // below 0: nothing
};

}  // namespace

void WindowEngine::begin_pieces(WindowOperation& operation) {
  const ShownPieces shown(window_, *peers_, rank_, operation.number);
  check_pieces(operation, shown);
  if (shown.are_in_cells()) {
    take_pieces(operation, shown);
    operation.stage = Stage::complete;
  } else if (shown.most_bytes() >= reads_from_bytes_) {
    take_pieces(operation, shown);
    end_here(operation);
  } else {
    stage_segments(operation, shown.most_bytes(), Window::kSegmentBytes);
  }
}

/// What does not fit is not taken, and this rank fails at the end: others count on its part until then.
void WindowEngine::check_pieces(WindowOperation& operation, const ShownPieces& shown) const {
  for (int from = 0; from < window_.ranks(); ++from) {
    Block& block = operation.pieces.received[static_cast<std::size_t>(from)];
    const std::int64_t bytes = shown.piece(from, rank_).bytes;
    if (bytes == block.bytes) continue;
    if (operation.mismatch.empty())
      operation.mismatch = fmt::format("{}: rank {} has {} bytes for rank {}, which expects {}",
                                       describe(operation.collective), from, bytes, rank_, block.bytes);
    block = {};
  }
}

void WindowEngine::take_pieces(const WindowOperation& operation, const ShownPieces& shown) const {
  // Each begins with another one, so that not all read the same memory at once.
  for (int distance = 1; distance < window_.ranks(); ++distance) {
    const int from = (rank_ + distance) % window_.ranks();
    const Block& block = operation.pieces.received[static_cast<std::size_t>(from)];
    if (block.bytes > 0) shown.take(from, block.data);
  }
}

bool WindowEngine::advance_piece_segments(WindowOperation& operation) {
  bool moved = false;
  const auto slots = static_cast<std::uint64_t>(Window::kSlots);
  if (copied_ < operation.end && window_.least(&RankArea::taken) + slots > copied_) {
    copy_in_pieces(operation, copied_);
    mine().copied.set(++copied_);
    moved = true;
  }
  if (taken_ < operation.end && window_.least(&RankArea::copied) > taken_) {
    take_from_slots(operation, taken_);
    mine().reduced.set(++reduced_);
    mine().taken.set(++taken_);
    moved = true;
  }
  if (taken_ == operation.end) operation.stage = Stage::complete;
  return moved;
}

void WindowEngine::copy_in_pieces(const WindowOperation& operation, std::uint64_t segment) {
  const ShownPieces shown(window_, *peers_, rank_, operation.number);
  const auto* const memory = reinterpret_cast<const std::byte*>(mine().cell(operation.number).offer.address);
  const auto index = static_cast<std::int64_t>(segment - operation.first);
  std::int64_t copied_begin = -1;
  for (int to = 0; to < window_.ranks(); ++to) {
    const PieceInSegment part(shown.piece(rank_, to), index);
    if (to == rank_ || part.bytes <= 0 || part.begin == copied_begin) continue;  // the last: all get the same
    copy_block(memory + part.begin, window_.input_slot(rank_, segment) + part.begin % Window::kSegmentBytes,
               part.bytes);
    copied_begin = part.begin;
  }
}

void WindowEngine::take_from_slots(const WindowOperation& operation, std::uint64_t segment) {
  const ShownPieces shown(window_, *peers_, rank_, operation.number);
  const auto index = static_cast<std::int64_t>(segment - operation.first);
  for (int from = 0; from < window_.ranks(); ++from) {
    const Piece& piece = shown.piece(from, rank_);
    const PieceInSegment part(piece, index);
    const Block& block = operation.pieces.received[static_cast<std::size_t>(from)];
    if (from == rank_ || part.bytes <= 0 || block.bytes == 0) continue;
    copy_block(window_.input_slot(from, segment) + part.begin % Window::kSegmentBytes,
               block.data + part.begin - piece.begin, part.bytes);
  }
}

}  // namespace tandem::comm
