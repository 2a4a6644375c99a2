// Offers, and what follows when all are there.
#include "tandem/comm/backends/native/window_engine.h"

#include "tandem/comm/backends/blocks.h"
#include "tandem/comm/backends/keep_for_ever.h"
#include "tandem/comm/backends/native/offers.h"
#include "tandem/core/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace tandem::comm {

namespace {

using Stage = WindowOperation::Stage;

constexpr std::string_view kWaitForAll = "wait for all";

bool has_pieces(CollectiveKind kind) {
  return kind == CollectiveKind::broadcast || kind == CollectiveKind::all_gather || kind == CollectiveKind::gather ||
         kind == CollectiveKind::scatter || kind == CollectiveKind::reduce_scatter ||
         kind == CollectiveKind::all_to_all;
}

/// Those of reduce_scatter all go to one place, where they are combined.
BlockExchange pieces_of(const Collective& collective, int rank, int ranks) {
  if (collective.kind != CollectiveKind::reduce_scatter) return exchange_of(collective, rank, ranks);
  const Block mine{static_cast<std::byte*>(collective.output),
                   collective.bytes(collective.counts[static_cast<std::size_t>(rank)])};
  return {blocks_of(collective.input, collective.counts, collective.dtype),
          std::vector<Block>(static_cast<std::size_t>(ranks), mine)};
}

}  // namespace

WindowEngine::WindowEngine(Window window, int rank, std::unique_ptr<PeerProcesses> peers, DataAccess access)
    : window_(std::move(window)),
      rank_(rank),
      peers_(std::move(peers)),
      reads_from_bytes_(access.reads_from_bytes),
      reading_obstacle_(std::move(access.reading_obstacle)),
      views_(rank, std::move(access.blocks), reads_from_bytes_ != DataAccess::kNever && peers_->are_all_here()),
      ended_(*peers_, rank, window_.ranks()) {}

/// After an error, other ranks may still be at what is under way.
WindowEngine::~WindowEngine() {
  for (std::shared_ptr<WindowOperation>& operation : queue_) {
    if (operation->stage == Stage::offered || operation->stage == Stage::done_here) keep_data(operation);
    window_.memory()->keep(std::move(operation));
  }
}

/// Where others read this rank's data, and write to them, in its own blocks: these must not become another tensor's.
void WindowEngine::keep_data(const std::shared_ptr<WindowOperation>& operation) {
  const Cell& cell = mine().cell(operation->number);
  using Kind = DataPlace::Kind;
  if (cell.input.kind == Kind::address) window_.memory()->keep(operation);  // for as long as other threads have it
  if (cell.input.kind == Kind::block || cell.output.kind == Kind::block) detail::keep_for_ever(operation);
}

bool WindowEngine::takes(CollectiveKind kind) const {
  if (has_pieces(kind)) return window_.ranks() <= Window::kMostRanksOfPieces;
  return kind == CollectiveKind::all_reduce || kind == CollectiveKind::reduce || kind == CollectiveKind::barrier;
}

std::shared_ptr<WindowOperation> WindowEngine::start(const Collective& collective) {
  auto operation = std::make_shared<WindowOperation>(
      WindowOperation{.collective = collective, .trace = OperationTrace::begin(collective, "shared-memory", rank_)});
  if (has_pieces(collective.kind)) operation->pieces = pieces_of(collective, rank_, window_.ranks());
  queue_.push_back(operation);
  poll();
  return operation;
}

bool WindowEngine::poll() {
  bool moved = false;
  while (!queue_.empty()) {
    WindowOperation& first = *queue_.front();
    if (first.trace) first.trace->look_at_clock();
    try {
      if (!advance(first)) break;
    } catch (...) {
      first.fault = std::current_exception();
      if (first.is_where_data_are) keep_data(queue_.front());
      fail_here(first);
    }
    moved = true;
    if (first.stage != Stage::complete) continue;
    if (first.trace && !first.fault) first.trace->finish(static_cast<std::int64_t>(first.number));
    if (!first.fault && !first.mismatch.empty()) first.fault = std::make_exception_ptr(Error(first.mismatch));
    queue_.pop_front();
  }
  return moved;
}

/// Whether it moved.
bool WindowEngine::advance(WindowOperation& operation) {
  switch (operation.stage) {
    case Stage::queued:
      offer(operation);
      return true;
    case Stage::offered:
      return try_begin(operation);
    case Stage::done_here:
      return try_end(operation);
    case Stage::staged:
      return has_pieces(operation.collective.kind) ? advance_piece_segments(operation) : advance_segments(operation);
    case Stage::complete:
      break;
  }
  return false;
}

void WindowEngine::offer(WindowOperation& operation) {
  const Collective& c = operation.collective;
  const std::int64_t bytes = c.bytes(c.count());
  const StepScope step(operation.trace, "offer", StepWork::copy, bytes);
  operation.number = ++number_;
  Cell& cell = mine().cell(operation.number);
  cell.has_failed.store(false, std::memory_order_relaxed);
  cell.offer = offer_of(c);
  cell.input.kind = cell.output.kind = DataPlace::Kind::hidden;
  if (has_pieces(c.kind)) {
    show_pieces(cell, operation.pieces.sent);
    if (cell.offer.bytes > Cell::bytes_behind_pieces(window_.ranks()))
      cell.input =
          views_.place_of(reinterpret_cast<const void*>(cell.offer.address), cell.offer.bytes, cell.input_block);
    cell.offer.is_readable = cell.input.kind == DataPlace::Kind::block || !may_be_read(c, cell.offer) ||
                             is_readable_by_others(cell.offer.address, cell.offer.bytes);
  } else if (bytes <= Cell::kPayloadBytes) {
    if (bytes > 0) std::memcpy(cell.payload, c.input, static_cast<std::size_t>(bytes));
  } else {
    cell.input = views_.place_of(c.input, bytes, cell.input_block);
    if (c.output == c.input) {
      cell.output = cell.input;
    } else if (c.output != nullptr) {
      cell.output = views_.place_of(c.output, bytes, cell.output_block);
      if (cell.input.kind == DataPlace::Kind::hidden && cell.output.kind != DataPlace::Kind::hidden) {
        copy_block(c.input, c.output, bytes);
        cell.input = cell.output;
        cell.input_block = cell.output_block;
      }
    }
  }
  cell.number.store(operation.number, std::memory_order_release);
  operation.stage = Stage::offered;
  if (!has_pieces(c.kind) || is_reduction(c.kind)) return;
  const auto& [sent, received] = operation.pieces;
  const auto own = static_cast<std::size_t>(rank_);
  copy_block(sent[own].data, received[own].data, received[own].bytes);  // while others come
}

/// Whether other processes read what this rank offers, as far as it knows: there are large data on some rank.
bool WindowEngine::may_be_read(const Collective& collective, const Offer& offer) const {
  if (reads_from_bytes_ == DataAccess::kNever || peers_->are_all_here()) return false;
  const bool may_be_large =
      collective.kind == CollectiveKind::all_to_all || collective.bytes(collective.total()) >= reads_from_bytes_;
  return may_be_large && offer.bytes > Cell::bytes_behind_pieces(window_.ranks());
}

bool WindowEngine::try_begin(WindowOperation& operation) {
  const int seen_before = operation.seen;
  const auto has_offered = [&](int rank) {
    return window_.area(rank).cell(operation.number).number.load(std::memory_order_acquire) == operation.number;
  };
  while (operation.seen < window_.ranks() && has_offered(operation.seen)) ++operation.seen;
  if (operation.seen < window_.ranks()) return operation.seen > seen_before;
  if (operation.trace) operation.trace->add_wait(kWaitForAll);
  const Offer& of_first = window_.area(0).cell(operation.number).offer;
  for (int rank = 1; rank < window_.ranks(); ++rank)
    require_alike(of_first, window_.area(rank).cell(operation.number).offer, rank);
  const Collective& c = operation.collective;
  if (has_pieces(c.kind)) {
    begin_pieces(operation);
  } else if (c.bytes(c.count()) <= Cell::kPayloadBytes) {
    reduce_cells(operation);
  } else if (operation.is_where_data_are = sees_all_data(operation); operation.is_where_data_are) {
    reduce_where_data_are(operation);
  } else {
    stage_segments(operation, c.count(), window_.segment_elements(size_of(c.dtype)));
  }
  return true;
}

void WindowEngine::end_here(WindowOperation& operation) {
  mine().done.set(operation.number);
  operation.stage = Stage::done_here;
}

void WindowEngine::stage_segments(WindowOperation& operation, std::int64_t count, std::int64_t in_a_segment) {
  operation.first = reduced_;
  operation.end = operation.first + static_cast<std::uint64_t>((count + in_a_segment - 1) / in_a_segment);
  operation.stage = Stage::staged;
}

bool WindowEngine::try_end(WindowOperation& operation) {
  if (window_.least(&RankArea::done) < operation.number) return false;
  if (operation.trace) operation.trace->add_wait(kWaitForAll);
  for (int rank = 0; rank < window_.ranks(); ++rank)
    if (window_.area(rank).cell(operation.number).has_failed.load(std::memory_order_relaxed))
      fail("{}: rank {} failed in it", describe(operation.collective), rank);
  operation.stage = Stage::complete;
  return true;
}

/// Nobody waits for this rank, and those that need its part learn that it is not there.
void WindowEngine::fail_here(WindowOperation& operation) {
  mine().cell(operation.number).has_failed.store(true, std::memory_order_relaxed);
  mine().done.set(operation.number);
  operation.stage = Stage::complete;
}

bool WindowEngine::waits_for(const WindowOperation& operation, int rank) const {
  RankArea& area = window_.area(rank);
  if (operation.stage == Stage::offered)
    return area.cell(operation.number).number.load(std::memory_order_acquire) != operation.number;
  if (operation.stage == Stage::done_here) return area.done.get() < operation.number;
  return area.reduced.get() < operation.end;
}

std::string WindowEngine::waits_for() const {
  if (queue_.empty()) return "";
  const WindowOperation& operation = *queue_.front();
  for (int rank = 0; rank < window_.ranks(); ++rank)
    if (rank != rank_ && waits_for(operation, rank))
      return fmt::format("shared memory, for rank {} to {}", rank,
                         operation.stage == Stage::offered ? "enter" : "do its part");
  return "shared memory";
}

void WindowEngine::check_peers() {
  if (queue_.empty()) return;
  const WindowOperation& operation = *queue_.front();
  const int ended = ended_.look([&](int rank) { return waits_for(operation, rank); });
  if (ended >= 0) fail("{}: {}", describe(operation.collective), ended_.text_of(ended));
}

}  // namespace tandem::comm
