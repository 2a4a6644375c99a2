// Pieces, taken or combined: from the cells, from the memory that they are in, and by segments.
#include "tandem/comm/backends/native/rank_reduction.h"
#include "tandem/comm/backends/native/window_engine.h"
#include "tandem/core/error.h"
#include "tandem/kernels/notice.h"

#include <algorithm>
#include <utility>

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
  const ShownPieces shown(window_, views_, *peers_, rank_, operation.number);
  check_pieces(operation, shown);
  const bool combines = is_reduction(operation.collective.kind);
  const bool are_in_cells = shown.are_in_cells();
  if (!are_in_cells && !reads(shown)) return stage_segments(operation, shown.most_bytes(), Window::kSegmentBytes);
  if (combines) {
    combine_pieces(operation, shown);
  } else {
    take_pieces(operation, shown);
  }
  if (are_in_cells) {
    operation.stage = Stage::complete;
  } else {
    end_here(operation);
  }
}

/// Whether pieces are read from where they are; the same on all ranks.
bool WindowEngine::reads(const ShownPieces& shown) {
  if (shown.are_seen()) return true;
  if (shown.most_bytes() >= DataAccess::kLeastToRead) tell_of_two_copies();
  if (shown.most_bytes() < reads_from_bytes_) return false;
  const int rank = shown.first_unreadable();
  if (rank < 0) return true;
  reading_obstacle_ = fmt::format("rank {} has data where the system lets no other process read", rank);
  tell_of_two_copies();
  return false;
}

/// Once.
void WindowEngine::tell_of_two_copies() {
  if (reading_obstacle_.empty() || std::exchange(has_told_, true) || rank_ != 0) return;
  kernels::notice(
      fmt::format("ranks cannot read each other's memory, and copy large data twice: {}", reading_obstacle_));
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
  StepScope step(operation.trace, "take", StepWork::copy, 0);
  // Each begins with another one, so that not all read the same memory at once.
  for (int distance = 1; distance < window_.ranks(); ++distance) {
    const int from = (rank_ + distance) % window_.ranks();
    const Block& block = operation.pieces.received[static_cast<std::size_t>(from)];
    if (block.bytes > 0) shown.take(from, 0, block.data, block.bytes);
    step.add_bytes(block.bytes);
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
    if (is_reduction(operation.collective.kind)) {
      combine_from_slots(operation, taken_);
    } else {
      take_from_slots(operation, taken_);
    }
    mine().reduced.set(++reduced_);
    mine().taken.set(++taken_);
    moved = true;
  }
  if (taken_ == operation.end) operation.stage = Stage::complete;
  return moved;
}

void WindowEngine::copy_in_pieces(const WindowOperation& operation, std::uint64_t segment) {
  const ShownPieces shown(window_, views_, *peers_, rank_, operation.number);
  const auto* const memory = reinterpret_cast<const std::byte*>(mine().cell(operation.number).offer.address);
  const auto index = static_cast<std::int64_t>(segment - operation.first);
  StepScope step(operation.trace, "copy in", StepWork::copy, 0, index);
  std::int64_t copied_begin = -1;
  for (int to = 0; to < window_.ranks(); ++to) {
    const PieceInSegment part(shown.piece(rank_, to), index);
    if (to == rank_ || part.bytes <= 0 || part.begin == copied_begin) continue;  // the last: all get the same
    copy_block(memory + part.begin, window_.input_slot(rank_, segment) + part.begin % Window::kSegmentBytes,
               part.bytes);
    step.add_bytes(part.bytes);
    copied_begin = part.begin;
  }
}

void WindowEngine::take_from_slots(const WindowOperation& operation, std::uint64_t segment) {
  const ShownPieces shown(window_, views_, *peers_, rank_, operation.number);
  const auto index = static_cast<std::int64_t>(segment - operation.first);
  StepScope step(operation.trace, "take", StepWork::copy, 0, index);
  for (int from = 0; from < window_.ranks(); ++from) {
    const Piece& piece = shown.piece(from, rank_);
    const PieceInSegment part(piece, index);
    const Block& block = operation.pieces.received[static_cast<std::size_t>(from)];
    if (from == rank_ || part.bytes <= 0 || block.bytes == 0) continue;
    copy_block(window_.input_slot(from, segment) + part.begin % Window::kSegmentBytes,
               block.data + part.begin - piece.begin, part.bytes);
    step.add_bytes(part.bytes);
  }
}

void WindowEngine::combine_pieces(const WindowOperation& operation, const ShownPieces& shown) {
  const Collective& c = operation.collective;
  const auto own = static_cast<std::size_t>(rank_);
  if (operation.pieces.received[own].bytes == 0 || !operation.mismatch.empty()) return;
  // What is read goes by blocks that stay in a cache until they are added.
  const std::int64_t bytes = operation.pieces.received[own].bytes;
  const StepScope step(operation.trace, "reduce", StepWork::reduce, bytes);
  for (std::int64_t begin = 0; begin < bytes; begin += Window::kSegmentBytes) {
    const std::int64_t length = std::min(Window::kSegmentBytes, bytes - begin);
    inputs_.clear();
    for (int from = 0; from < window_.ranks(); ++from) inputs_.push_back(looked_at(shown, from, begin, length));
    outputs_ = {static_cast<std::byte*>(c.output) + begin};
    reduce_ranks(inputs_, outputs_, length / size_of(c.dtype), c.dtype, c.op);
  }
}

/// A part of a rank's piece, or a copy that holds until the rank's next one.
const std::byte* WindowEngine::looked_at(const ShownPieces& shown, int from, std::int64_t begin, std::int64_t bytes) {
  if (const std::byte* const data = shown.view(from); data != nullptr) return data + begin;
  if (copies_ == nullptr)
    copies_ = std::make_unique<Storage>(window_.ranks() * Window::kSegmentBytes, Device{}, MemoryTag::comm);
  std::byte* const copy = static_cast<std::byte*>(copies_->data()) + from * Window::kSegmentBytes;
  shown.take(from, begin, copy, bytes);
  return copy;
}

/// Ranks have this one's piece in the same place, as counts are alike.
void WindowEngine::combine_from_slots(const WindowOperation& operation, std::uint64_t segment) {
  const Collective& c = operation.collective;
  const ShownPieces shown(window_, views_, *peers_, rank_, operation.number);
  const Piece& piece = shown.piece(rank_, rank_);
  const auto index = static_cast<std::int64_t>(segment - operation.first);
  const PieceInSegment part(piece, index);
  if (part.bytes <= 0 || !operation.mismatch.empty()) return;
  const StepScope step(operation.trace, "reduce", StepWork::reduce, part.bytes, index);
  const std::int64_t in_piece = part.begin - piece.begin;
  inputs_.clear();
  for (int from = 0; from < window_.ranks(); ++from)
    inputs_.push_back(from == rank_ ? operation.pieces.sent[static_cast<std::size_t>(rank_)].data + in_piece
                                    : window_.input_slot(from, segment) + part.begin % Window::kSegmentBytes);
  outputs_ = {static_cast<std::byte*>(c.output) + in_piece};
  reduce_ranks(inputs_, outputs_, part.bytes / size_of(c.dtype), c.dtype, c.op);
}

}  // namespace tandem::comm
