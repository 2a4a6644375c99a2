// What goes through the device window, segment by segment.
#include "tandem/comm/backends/blocks.h"
#include "tandem/comm/backends/native/device_engine.h"
#include "tandem/comm/schedules/schedule.h"
#include "tandem/comm/transports/shared_memory/shared_memory.h"

#include <algorithm>
#include <vector>

namespace tandem::comm {

namespace {

constexpr std::int64_t kUnit = 16;  // bytes: parts begin where kernels can read as much at once
constexpr std::int64_t kSlotUnit = 256;

std::int64_t pieces_in(std::int64_t bytes, std::int64_t piece) { return (bytes + piece - 1) / piece; }

/// The part of some bytes that each rank reduces.
ByteRange part_of(std::int64_t bytes, int ranks, int rank) {
  const ElementRange units = chunk_range(pieces_in(bytes, kUnit), ranks, rank);
  const std::int64_t begin = std::min(bytes, units.begin * kUnit);
  return {begin, std::min(bytes, (units.begin + units.count) * kUnit) - begin};
}

/// What a segment has of so many bytes.
ByteRange segment_of(std::int64_t bytes, std::int64_t segment_bytes, std::int64_t index) {
  const std::int64_t begin = std::min(bytes, index * segment_bytes);
  return {begin, std::min(segment_bytes, bytes - begin)};
}

}  // namespace

std::int64_t result_slot_bytes(std::int64_t segment_bytes, int ranks) {
  return pieces_in((pieces_in(segment_bytes, kUnit) / ranks + 1) * kUnit, kSlotUnit) * kSlotUnit;
}

/// Bytes that a segment of a reduce_scatter has for each rank.
std::int64_t DeviceEngine::scatter_bytes() const { return std::max(kUnit, segments_.bytes / ranks_ / kUnit * kUnit); }

std::int64_t DeviceEngine::segments_of(const Collective& c) const {
  const std::int64_t bytes = c.kind == CollectiveKind::reduce_scatter ? scatter_bytes() : segments_.bytes;
  return pieces_in(c.bytes(c.counts.empty() ? 0 : *std::ranges::max_element(c.counts)), bytes);
}

void DeviceEngine::wait_for_others(DeviceMark mark, std::uint64_t segment) {
  for (int rank = 0; rank < ranks_; ++rank)
    if (rank != rank_) window_->wait_for(rank, mark, segment);
}

void DeviceEngine::copy_in(const DeviceOperation& operation, std::uint64_t segment) {
  const Collective& c = operation.collective;
  const auto index = static_cast<std::int64_t>(segment - operation.first);
  if (segment >= DeviceWindow::kSlots) wait_for_others(DeviceMark::taken, segment - DeviceWindow::kSlots);
  std::byte* const slot = window_->input_slot(rank_, segment);
  const auto* const input = static_cast<const std::byte*>(c.input);
  if (c.kind == CollectiveKind::reduce_scatter) {
    const std::vector<Block> parts = blocks_of(c.input, c.counts, c.dtype);
    for (int rank = 0; rank < ranks_; ++rank) {
      const Block& part = parts[static_cast<std::size_t>(rank)];
      const ByteRange range = segment_of(part.bytes, scatter_bytes(), index);
      window_->copy(part.data + range.begin, slot + rank * scatter_bytes(), range.bytes);
    }
  } else if (c.kind != CollectiveKind::broadcast || c.peer == rank_) {
    const bool is_piece = c.kind == CollectiveKind::all_gather;
    const std::int64_t count = is_piece ? c.counts[static_cast<std::size_t>(rank_)] : c.count();
    const ByteRange range = segment_of(c.bytes(count), segments_.bytes, index);
    window_->copy(input + range.begin, slot, range.bytes);
  }
  window_->record(DeviceMark::copied, segment);
}

void DeviceEngine::reduce_part(const DeviceOperation& operation, std::uint64_t segment) {
  const Collective& c = operation.collective;
  wait_for_others(DeviceMark::copied, segment);
  const auto index = static_cast<std::int64_t>(segment - operation.first);
  const ByteRange range = segment_of(c.bytes(c.count()), segments_.bytes, index);
  const ByteRange part = part_of(range.bytes, ranks_, rank_);
  window_->reduce(segment, part.begin, part.bytes / size_of(c.dtype), c.dtype, c.op,
                  window_->result_slot(rank_, segment));
  window_->record(DeviceMark::reduced, segment);
}

void DeviceEngine::take(const DeviceOperation& operation, std::uint64_t segment) {
  wait_for_others(operation.by_parts ? DeviceMark::reduced : DeviceMark::copied, segment);
  if (operation.collective.output != nullptr) take_result(operation, segment);
}

void DeviceEngine::take_result(const DeviceOperation& operation, std::uint64_t segment) {
  const Collective& c = operation.collective;
  const auto index = static_cast<std::int64_t>(segment - operation.first);
  auto* const output = static_cast<std::byte*>(c.output);
  switch (c.kind) {
    case CollectiveKind::reduce_scatter: {
      const std::int64_t bytes = c.bytes(c.counts[static_cast<std::size_t>(rank_)]);
      const ByteRange range = segment_of(bytes, scatter_bytes(), index);
      return window_->reduce(segment, rank_ * scatter_bytes(), range.bytes / size_of(c.dtype), c.dtype, c.op,
                             output + range.begin);
    }
    case CollectiveKind::all_gather: {
      const std::vector<Block> pieces = blocks_of(c.output, c.counts, c.dtype);
      for (int rank = 0; rank < ranks_; ++rank) {
        const Block& piece = pieces[static_cast<std::size_t>(rank)];
        const ByteRange range = segment_of(piece.bytes, segments_.bytes, index);
        if (rank != rank_ || piece.data != c.input)
          window_->copy(window_->input_slot(rank, segment), piece.data + range.begin, range.bytes);
      }
      return;
    }
    default:
      break;
  }
  const ByteRange range = segment_of(c.bytes(c.count()), segments_.bytes, index);
  if (c.kind == CollectiveKind::broadcast) {
    if (c.peer != rank_) window_->copy(window_->input_slot(c.peer, segment), output + range.begin, range.bytes);
  } else if (operation.by_parts) {
    for (int rank = 0; rank < ranks_; ++rank) {
      const ByteRange part = part_of(range.bytes, ranks_, rank);
      window_->copy(window_->result_slot(rank, segment), output + range.begin + part.begin, part.bytes);
    }
  } else {
    window_->reduce(segment, 0, range.bytes / size_of(c.dtype), c.dtype, c.op, output + range.begin);
  }
}

}  // namespace tandem::comm
