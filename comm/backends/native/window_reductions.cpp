// Reductions: of what is in the cells, of data where they are, and by segments.
#include "tandem/comm/backends/blocks.h"
#include "tandem/comm/backends/native/rank_reduction.h"
#include "tandem/comm/backends/native/window_engine.h"
#include "tandem/comm/schedules/schedule.h"

#include <algorithm>

namespace tandem::comm {

namespace {

using Stage = WindowOperation::Stage;

/// Which elements of a segment a collective has, and which of these each rank combines.
struct SegmentElements {
  SegmentElements(const Window& window, const WindowOperation& operation, std::uint64_t segment)
      : element_bytes(size_of(operation.collective.dtype)),
        ranks(window.ranks()),
        index(static_cast<std::int64_t>(segment - operation.first)) {
    const std::int64_t longest = window.segment_elements(element_bytes);
    begin = index * longest;
    count = std::min(longest, operation.collective.count() - begin);
  }
  ElementRange part_of(int rank) const { return chunk_range(count, ranks, rank); }
  std::int64_t part_offset(int rank) const { return part_of(rank).begin * element_bytes; }
  std::int64_t part_bytes(int rank) const { return part_of(rank).count * element_bytes; }
  std::int64_t bytes_of_others(int rank) const { return count * element_bytes - part_bytes(rank); }

  std::int64_t element_bytes;
  int ranks;
  std::int64_t index;  // among those of the collective
  std::int64_t begin = 0, count = 0;
};

}  // namespace

/// Whether every rank's data are where all others see them. What ranks have of a segment they have for as long as they
/// have data there themselves.
bool WindowEngine::sees_all_data(const WindowOperation& operation) const {
  const auto cell = [&](int rank) -> const Cell& { return window_.area(rank).cell(operation.number); };
  const auto are_seen = [&](DataPlace Cell::* which) {
    const DataPlace& first = cell(0).*which;
    for (int rank = 1; rank < window_.ranks(); ++rank) {
      const DataPlace& place = cell(rank).*which;
      if (place.kind != first.kind || place.segment != first.segment) return false;
    }
    return first.kind != DataPlace::Kind::hidden;
  };
  if (!are_seen(&Cell::input)) return false;
  if (operation.collective.kind == CollectiveKind::all_reduce) return are_seen(&Cell::output);
  // Of a segment the others would have to have an output, too.
  const DataPlace::Kind output = cell(operation.collective.peer).output.kind;
  return output == DataPlace::Kind::block || output == DataPlace::Kind::address;
}

void WindowEngine::reduce_cells(WindowOperation& operation) {
  const Collective& c = operation.collective;
  if (c.output != nullptr && c.count() > 0) {
    inputs_.clear();
    for (int rank = 0; rank < window_.ranks(); ++rank)
      inputs_.push_back(window_.area(rank).cell(operation.number).payload);
    outputs_ = {static_cast<std::byte*>(c.output)};
    const StepScope step(operation.trace, "reduce", StepWork::reduce, c.bytes(c.count()));
    reduce_ranks(inputs_, outputs_, c.count(), c.dtype, c.op);
  }
  operation.stage = Stage::complete;
}

void WindowEngine::reduce_where_data_are(WindowOperation& operation) {
  const Collective& c = operation.collective;
  const Cell& own = mine().cell(operation.number);
  for (const DataPlace& place : {own.input, own.output})
    if (place.kind == DataPlace::Kind::segment) operation.segments.push_back(views_.parts().memory(place.segment));
  // Parts end where cache lines do, if the data begin where one does: no line is written by two ranks.
  const std::int64_t element_bytes = size_of(c.dtype),
                     unit = static_cast<std::int64_t>(kSharedLineBytes) / element_bytes;
  const ElementRange units = chunk_range((c.count() + unit - 1) / unit, window_.ranks(), rank_);
  const std::int64_t begin = units.begin * unit, end = std::min(c.count(), (units.begin + units.count) * unit);
  inputs_.clear();
  outputs_.clear();
  for (int rank = 0; rank < window_.ranks(); ++rank) {
    const Cell& cell = window_.area(rank).cell(operation.number);
    std::byte* const input = views_.view(rank, cell.input, cell.input_block) + begin * element_bytes;
    inputs_.push_back(input);
    if (cell.output.kind == DataPlace::Kind::hidden) continue;
    const bool is_in_place = cell.output.address == cell.input.address;
    outputs_.push_back(is_in_place ? input : views_.view(rank, cell.output, cell.output_block) + begin * element_bytes);
  }
  if (begin < end) {
    const StepScope step(operation.trace, "reduce", StepWork::reduce, c.bytes(end - begin));
    reduce_ranks(inputs_, outputs_, end - begin, c.dtype, c.op);
  }
  end_here(operation);
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
  const StepScope step(operation.trace, "copy in", StepWork::copy, elements.bytes_of_others(rank_), elements.index);
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
  const StepScope step(operation.trace, "reduce", StepWork::reduce, elements.part_bytes(rank_), elements.index);
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
  const StepScope step(operation.trace, "take", StepWork::copy, elements.bytes_of_others(rank_), elements.index);
  std::byte* const to = static_cast<std::byte*>(operation.collective.output) + elements.begin * elements.element_bytes;
  for (int rank = 0; rank < window_.ranks(); ++rank)
    if (rank != rank_)
      copy_block(window_.result_slot(rank, segment), to + elements.part_offset(rank), elements.part_bytes(rank));
}

}  // namespace tandem::comm
