// Mappings, and their moves.
#include "tandem/core/page_block.h"

#include "tandem/core/allocator.h"
#include "tandem/core/error.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#if defined(__linux__) && !defined(__SANITIZE_ADDRESS__)
#include <sys/mman.h>
#define TANDEM_MAPS_BLOCKS 1
#endif

namespace tandem {

namespace {

bool is_large(std::int64_t capacity) { return capacity >= 2 * PageBlock::kPage; }

#ifdef TANDEM_MAPS_BLOCKS
// From the kernel itself: malloc would keep what is freed on its heap, and cut it up.
void* map(std::int64_t capacity) {
  const bool large = is_large(capacity);
  const std::int64_t spare = large ? PageBlock::kPage : 0;  // for alignment
  void* const mapped = mmap(nullptr, static_cast<std::size_t>(capacity + spare), PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  auto* const start = static_cast<std::byte*>(mapped);
  const auto misaligned = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(start) % PageBlock::kPage);
  const std::int64_t before = large && misaligned != 0 ? PageBlock::kPage - misaligned : 0;
  if (before > 0) munmap(start, static_cast<std::size_t>(before));
  if (spare > before) munmap(start + before + capacity, static_cast<std::size_t>(spare - before));
  if (large) madvise(start + before, static_cast<std::size_t>(capacity), MADV_HUGEPAGE);
  return start + before;
}

void unmap(void* start, std::int64_t capacity) noexcept { munmap(start, static_cast<std::size_t>(capacity)); }

/// What was mapped at `to` is given back. Where the system refuses, pages are new there.
bool move_mapping(void* from, void* to, std::int64_t bytes) {
  const auto size = static_cast<std::size_t>(bytes);
  if (mremap(from, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, to) != MAP_FAILED) return true;
  // By then it may have given back what was at `to`: before 6.17 Linux does before it looks at `from`.
  void* const mapped = mmap(to, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  require(mapped != MAP_FAILED, "out of CPU memory: the system maps no {} bytes more", bytes);
  madvise(to, size, MADV_HUGEPAGE);
  return false;
}
#else
void* map(std::int64_t capacity) {
  const std::int64_t alignment = is_large(capacity) ? PageBlock::kPage : kAlignment;
  return std::aligned_alloc(static_cast<std::size_t>(alignment), static_cast<std::size_t>(capacity));
}

void unmap(void* start, std::int64_t /*capacity*/) noexcept { std::free(start); }

bool move_mapping(void* /*from*/, void* /*to*/, std::int64_t /*bytes*/) { return false; }
#endif

}  // namespace

std::int64_t PageBlock::capacity_for(std::int64_t bytes) { return round_up(bytes, is_large(bytes) ? kPage : 4096); }

PageBlock::PageBlock(std::int64_t bytes) {
  const std::int64_t capacity = capacity_for(bytes);
  start_ = static_cast<std::byte*>(map(capacity));
  if (start_ == nullptr) return;
  capacity_ = capacity;
#ifdef TANDEM_MAPS_BLOCKS
  is_movable_ = is_large(capacity);
  if (is_movable_) parts_ = {capacity};
#endif
}

PageBlock::PageBlock(PageBlock&& other) noexcept { *this = std::move(other); }

PageBlock& PageBlock::operator=(PageBlock&& other) noexcept {
  if (this == &other) return *this;
  give_back();
  start_ = std::exchange(other.start_, nullptr);
  capacity_ = std::exchange(other.capacity_, 0);
  is_movable_ = std::exchange(other.is_movable_, false);
  parts_ = std::exchange(other.parts_, {});
  return *this;
}

PageBlock::~PageBlock() { give_back(); }

void PageBlock::give_back() noexcept {
  if (capacity_ > 0) unmap(start_, capacity_);
}

/// So that one begins there.
void PageBlock::cut_part_at(std::int64_t offset) {
  std::int64_t begin = 0;
  for (auto part = parts_.begin(); part != parts_.end(); begin += *part++) {
    if (offset <= begin || offset >= begin + *part) continue;
    const std::int64_t rest = begin + *part - offset;
    *part -= rest;
    parts_.insert(part + 1, rest);
    return;
  }
}

std::int64_t PageBlock::take_pages(PageBlock& donor, std::int64_t offset, std::int64_t bytes) {
  if (!is_movable_ || !donor.is_movable_) return 0;
  bytes = std::min({bytes, donor.capacity_, capacity_ - offset});
  std::vector<std::int64_t> moved;
  std::int64_t end = offset;
  while (end < offset + bytes) {
    const std::int64_t part = std::min(donor.parts_.back(), offset + bytes - end);
    moved.push_back(part);  // what can throw comes before the move
    if (!move_mapping(donor.start_ + donor.capacity_ - part, start_ + end, part)) {
      moved.pop_back();
      break;
    }
    end += part;
    donor.capacity_ -= part;
    donor.parts_.back() -= part;
    if (donor.parts_.back() == 0) donor.parts_.pop_back();
  }
  if (moved.empty()) return 0;
  cut_part_at(offset);
  cut_part_at(end);
  std::int64_t begin = 0;
  auto first = parts_.begin();
  while (begin < offset) begin += *first++;
  auto last = first;
  while (begin < end) begin += *last++;
  parts_.insert(parts_.erase(first, last), moved.begin(), moved.end());
  return end - offset;
}

}  // namespace tandem
