// Where everything is.
#include "tandem/comm/transports/shared_memory/window.h"

#include "tandem/core/error.h"

#include <algorithm>
#include <new>
#include <utility>

namespace tandem::comm {

namespace {

constexpr std::int64_t round_up(std::int64_t bytes, std::int64_t unit) { return (bytes + unit - 1) / unit * unit; }

constexpr std::int64_t kSlotsBegin = round_up(sizeof(RankArea), 4096);

}  // namespace

static_assert(std::atomic<std::uint64_t>::is_always_lock_free, "a lock would be one process's own");

Window::Window(std::shared_ptr<SharedMemory> memory, int ranks)
    : memory_(std::move(memory)), ranks_(ranks), result_bytes_(result_bytes(ranks)), part_bytes_(part_bytes(ranks)) {
  require(memory_->bytes() >= ranks * part_bytes_, "a window of {} ranks needs {} bytes, and has {}", ranks,
          ranks * part_bytes_, memory_->bytes());
}

/// One element more than the N-th part, as parts differ by one, of at most 8 bytes.
std::int64_t Window::result_bytes(int ranks) { return round_up(kSegmentBytes / ranks + 8, 4096); }

std::int64_t Window::part_bytes(int ranks) { return kSlotsBegin + kSlots * (kSegmentBytes + result_bytes(ranks)); }

std::byte* Window::input_slot(int rank, std::uint64_t segment) const {
  return start_of(rank) + kSlotsBegin + static_cast<std::int64_t>(segment % kSlots) * kSegmentBytes;
}

std::byte* Window::result_slot(int rank, std::uint64_t segment) const {
  return start_of(rank) + kSlotsBegin + kSlots * kSegmentBytes +
         static_cast<std::int64_t>(segment % kSlots) * result_bytes_;
}

std::uint64_t Window::least(Counter RankArea::* counter) const {
  std::uint64_t result = (area(0).*counter).get();
  for (int rank = 1; rank < ranks_; ++rank) result = std::min(result, (area(rank).*counter).get());
  return result;
}

}  // namespace tandem::comm
