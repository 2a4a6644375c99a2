// Offers, and what follows when all are there.
#include "tandem/comm/backends/native/window_engine.h"

#include "tandem/comm/backends/blocks.h"
#include "tandem/comm/backends/native/rank_reduction.h"
#include "tandem/comm/schedules/schedule.h"
#include "tandem/core/error.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace tandem::comm {

namespace {

using Stage = WindowOperation::Stage;

std::int64_t bytes_of(const Collective& collective) { return collective.bytes(collective.count()); }

std::string text_of(const Offer& offer) {
  return describe(
      {.kind = offer.kind, .dtype = offer.dtype, .op = offer.op, .peer = offer.root, .counts = {offer.count}});
}

bool are_alike(const Offer& a, const Offer& b) {
  return a.kind == b.kind && a.dtype == b.dtype && a.op == b.op && a.count == b.count && a.root == b.root;
}

/// Which elements of a segment a collective has, and which of these each rank combines.
struct SegmentElements {
  SegmentElements(const Window& window, const WindowOperation& operation, std::uint64_t segment)
      : element_bytes(size_of(operation.collective.dtype)), ranks(window.ranks()) {
    const std::int64_t longest = window.segment_elements(element_bytes);
    begin = static_cast<std::int64_t>(segment - operation.first) * longest;
    count = std::min(longest, operation.collective.count() - begin);
  }
  ElementRange part_of(int rank) const { return chunk_range(count, ranks, rank); }
  std::int64_t part_offset(int rank) const { return part_of(rank).begin * element_bytes; }
  std::int64_t part_bytes(int rank) const { return part_of(rank).count * element_bytes; }

  std::int64_t element_bytes;
  int ranks;
  std::int64_t begin = 0, count = 0;
};

}  // namespace

WindowEngine::WindowEngine(Window window, int rank, std::unique_ptr<PeerProcesses> peers)
    : window_(std::move(window)), rank_(rank), peers_(std::move(peers)), parts_(rank) {}

bool WindowEngine::takes(CollectiveKind kind) {
  return kind == CollectiveKind::all_reduce || kind == CollectiveKind::reduce || kind == CollectiveKind::barrier;
}

std::shared_ptr<WindowOperation> WindowEngine::start(const Collective& collective) {
  auto operation = std::make_shared<WindowOperation>(WindowOperation{.collective = collective});
  queue_.push_back(operation);
  poll();
  return operation;
}

bool WindowEngine::poll() {
  bool moved = false;
  while (!queue_.empty()) {
    WindowOperation& first = *queue_.front();
    try {
      if (!advance(first)) break;
    } catch (...) {
      first.fault = std::current_exception();
      first.stage = Stage::complete;
    }
    moved = true;
    if (first.stage == Stage::complete) queue_.pop_front();
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
    case Stage::in_place:
      if (window_.least(&RankArea::reduced) < operation.end) return false;
      operation.stage = Stage::complete;
      return true;
    case Stage::staged:
      return advance_segments(operation);
    case Stage::complete:
      break;
  }
  return false;
}

void WindowEngine::offer(WindowOperation& operation) {
  const Collective& c = operation.collective;
  const std::int64_t bytes = bytes_of(c);
  operation.number = ++number_;
  Cell& cell = mine().cell(operation.number);
  cell.offer = {.count = c.count(), .root = c.peer, .kind = c.kind, .dtype = c.dtype, .op = c.op};
  if (bytes <= Cell::kPayloadBytes) {
    if (bytes > 0) std::memcpy(cell.payload, c.input, static_cast<std::size_t>(bytes));
  } else if (c.kind == CollectiveKind::all_reduce) {
    const auto [segment, offset] = parts_.find(c.output, bytes);
    cell.offer.segment = segment;
    cell.offer.offset = offset;
    if (segment != 0) copy_block(c.input, c.output, bytes);
  }
  cell.number.store(operation.number, std::memory_order_release);
  operation.stage = Stage::offered;
}

bool WindowEngine::try_begin(WindowOperation& operation) {
  const int seen_before = operation.seen;
  const auto has_offered = [&](int rank) {
    return window_.area(rank).cell(operation.number).number.load(std::memory_order_acquire) == operation.number;
  };
  while (operation.seen < window_.ranks() && has_offered(operation.seen)) ++operation.seen;
  if (operation.seen < window_.ranks()) return operation.seen > seen_before;
  check_offers(operation);
  const std::int64_t bytes = bytes_of(operation.collective);
  operation.first = reduced_;
  if (bytes <= Cell::kPayloadBytes) {
    reduce_cells(operation);
  } else if (is_in_one_segment(operation)) {
    reduce_in_place(operation);
  } else {
    const std::int64_t elements = window_.segment_elements(size_of(operation.collective.dtype));
    operation.end =
        operation.first + static_cast<std::uint64_t>((operation.collective.count() + elements - 1) / elements);
    operation.stage = Stage::staged;
  }
  return true;
}

void WindowEngine::check_offers(const WindowOperation& operation) const {
  const Offer& first = window_.area(0).cell(operation.number).offer;
  for (int rank = 1; rank < window_.ranks(); ++rank) {
    const Offer& other = window_.area(rank).cell(operation.number).offer;
    require(are_alike(first, other),
            "{} on rank 0 meets {} on rank {}: all ranks must call the same collectives in the same order, with the "
            "same shapes and arguments",
            text_of(first), text_of(other), rank);
  }
}

bool WindowEngine::is_in_one_segment(const WindowOperation& operation) const {
  const std::int32_t segment = window_.area(0).cell(operation.number).offer.segment;
  for (int rank = 0; rank < window_.ranks(); ++rank)
    if (window_.area(rank).cell(operation.number).offer.segment != segment) return false;
  return segment != 0;
}

void WindowEngine::reduce_cells(WindowOperation& operation) {
  const Collective& c = operation.collective;
  if (c.output != nullptr && c.count() > 0) {
    inputs_.clear();
    for (int rank = 0; rank < window_.ranks(); ++rank)
      inputs_.push_back(window_.area(rank).cell(operation.number).payload);
    outputs_ = {static_cast<std::byte*>(c.output)};
    reduce_ranks(inputs_, outputs_, c.count(), c.dtype, c.op);
  }
  operation.stage = Stage::complete;
}

void WindowEngine::reduce_in_place(WindowOperation& operation) {
  const Collective& c = operation.collective;
  const std::int32_t segment = mine().cell(operation.number).offer.segment;
  operation.segment = parts_.memory(segment);
  // Parts end where cache lines do, if the data begin where one does: no line is written by two ranks.
  const std::int64_t element_bytes = size_of(c.dtype),
                     unit = static_cast<std::int64_t>(kSharedLineBytes) / element_bytes;
  const ElementRange units = chunk_range((c.count() + unit - 1) / unit, window_.ranks(), rank_);
  const std::int64_t begin = units.begin * unit, end = std::min(c.count(), (units.begin + units.count) * unit);
  inputs_.clear();
  outputs_.clear();
  for (int rank = 0; rank < window_.ranks(); ++rank) {
    const Offer& offer = window_.area(rank).cell(operation.number).offer;
    outputs_.push_back(parts_.part(segment, rank) + offer.offset + begin * element_bytes);
    inputs_.push_back(outputs_.back());
  }
  if (begin < end) reduce_ranks(inputs_, outputs_, end - begin, c.dtype, c.op);
  mine().copied.set(++copied_);
  mine().taken.set(++taken_);
  mine().reduced.set(++reduced_);
  operation.end = reduced_;
  operation.stage = Stage::in_place;
}

bool WindowEngine::advance_segments(WindowOperation& operation) {
  bool moved = false;
  const std::uint64_t end = operation.end;
  const auto slots = static_cast<std::uint64_t>(Window::kSlots);
  if (copied_ < end && window_.least(&RankArea::reduced) + slots > copied_) {
    copy_in(operation, copied_);
    mine().copied.set(++copied_);
    moved = true;
  }
  if (reduced_ < end && window_.least(&RankArea::copied) > reduced_ &&
      window_.least(&RankArea::taken) + slots > reduced_) {
    reduce_part(operation, reduced_);
    mine().reduced.set(++reduced_);
    moved = true;
  }
  if (taken_ < end && window_.least(&RankArea::reduced) > taken_) {
    take(operation, taken_);
    mine().taken.set(++taken_);
    moved = true;
  }
  if (taken_ == end) operation.stage = Stage::complete;
  return moved;
}

void WindowEngine::copy_in(const WindowOperation& operation, std::uint64_t segment) {
  const SegmentElements elements(window_, operation, segment);
  const auto* const from =
      static_cast<const std::byte*>(operation.collective.input) + elements.begin * elements.element_bytes;
  std::byte* const to = window_.input_slot(rank_, segment);
  for (int rank = 0; rank < window_.ranks(); ++rank) {
    const std::int64_t at = elements.part_offset(rank);
    if (rank != rank_) copy_block(from + at, to + at, elements.part_bytes(rank));
  }
}

void WindowEngine::reduce_part(const WindowOperation& operation, std::uint64_t segment) {
  const Collective& c = operation.collective;
  const SegmentElements elements(window_, operation, segment);
  const std::int64_t at = elements.part_offset(rank_), in_data = elements.begin * elements.element_bytes + at;
  inputs_.clear();
  for (int rank = 0; rank < window_.ranks(); ++rank)
    inputs_.push_back(rank == rank_ ? static_cast<const std::byte*>(c.input) + in_data
                                    : window_.input_slot(rank, segment) + at);
  outputs_.clear();
  if (c.output != nullptr) outputs_.push_back(static_cast<std::byte*>(c.output) + in_data);
  outputs_.push_back(window_.result_slot(rank_, segment));
  reduce_ranks(inputs_, outputs_, elements.part_of(rank_).count, c.dtype, c.op);
}

void WindowEngine::take(const WindowOperation& operation, std::uint64_t segment) {
  if (operation.collective.output == nullptr) return;
  const SegmentElements elements(window_, operation, segment);
  std::byte* const to = static_cast<std::byte*>(operation.collective.output) + elements.begin * elements.element_bytes;
  for (int rank = 0; rank < window_.ranks(); ++rank)
    if (rank != rank_)
      copy_block(window_.result_slot(rank, segment), to + elements.part_offset(rank), elements.part_bytes(rank));
}

bool WindowEngine::waits_for(const WindowOperation& operation, int rank) const {
  RankArea& area = window_.area(rank);
  if (operation.stage == Stage::offered)
    return area.cell(operation.number).number.load(std::memory_order_acquire) != operation.number;
  return area.reduced.get() < operation.end;
}

void WindowEngine::check_peers() {
  constexpr int kLooksBetween = 1000;
  // A launcher that ends all ranks when one has ended is quicker than this, and its text says more.
  constexpr std::chrono::seconds kPatience{2};
  if (queue_.empty() || ++idle_looks_ % kLooksBetween != 0) return;
  const WindowOperation& operation = *queue_.front();
  for (int rank = 0; rank < window_.ranks(); ++rank) {
    if (rank == rank_ || !waits_for(operation, rank) || !peers_->has_ended(rank)) continue;
    if (ended_since_ == Clock::time_point()) ended_since_ = Clock::now();
    require(Clock::now() - ended_since_ < kPatience, "{}: rank {} (process {}) has ended, and rank {} waits for it",
            describe(operation.collective), rank, peers_->process(rank), rank_);
    return;
  }
  ended_since_ = {};
}

}  // namespace tandem::comm
