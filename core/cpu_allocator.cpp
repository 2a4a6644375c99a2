// The CPU allocator's cache of large blocks.
#include "tandem/core/cpu_allocator.h"

#include "tandem/core/error.h"
#include "tandem/core/fork.h"
#include "tandem/core/memory.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <iterator>
#include <new>
#include <utility>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace tandem {

namespace {

// Small networks have blocks of many sizes; with less, half of their step goes into mapping pages (docs/results/).
constexpr std::int64_t kLeastSpare = std::int64_t{64} << 20;

#if defined(__SANITIZE_ADDRESS__)
// A cached block, and what a live one has beyond the bytes asked for, must not be touched.
void forbid(void* block, std::int64_t bytes) { ASAN_POISON_MEMORY_REGION(block, static_cast<std::size_t>(bytes)); }
void allow(void* block, std::int64_t bytes) { ASAN_UNPOISON_MEMORY_REGION(block, static_cast<std::size_t>(bytes)); }
#else
void forbid(void* /*block*/, std::int64_t /*bytes*/) {}
void allow(void* /*block*/, std::int64_t /*bytes*/) {}
#endif

}  // namespace

CpuAllocator::~CpuAllocator() { release_cached(); }

void* CpuAllocator::allocate(std::int64_t bytes) {
  require(bytes > 0 && bytes <= std::int64_t{1} << 46, "cannot allocate {} bytes of CPU memory", bytes);
  if (bytes < kLargeBlock) {
    const auto size = static_cast<std::size_t>(round_up(bytes, kAlignment));
    if (void* block = std::aligned_alloc(static_cast<std::size_t>(kAlignment), size)) return block;
    release_cached();
    if (void* block = std::aligned_alloc(static_cast<std::size_t>(kAlignment), size)) return block;
    fail("out of CPU memory: {} bytes asked for", bytes);
  }
  std::unique_lock lock(mutex_);
  PageBlock block = cached_block(bytes);
  if (block.capacity() == 0) block = new_block(bytes);
  if (block.capacity() == 0) {
    const std::int64_t in_use = live_bytes_;
    lock.unlock();  // nobody takes another mutex with this one held
    fail("out of CPU memory: {} bytes asked for, {} in use: {}", bytes, in_use, largest_memory_tags(Device{}));
  }
  void* const start = block.start();
  const std::int64_t capacity = block.capacity();
  live_blocks_.emplace(start, std::move(block));  // what can throw comes before the block is counted
  forbid(start, capacity);
  allow(start, bytes);
  live_bytes_ += capacity;
  most_live_bytes_ = std::max(most_live_bytes_, live_bytes_);
  return start;
}

/// The smallest that is large enough, and not much larger; empty if there is none.
PageBlock CpuAllocator::cached_block(std::int64_t bytes) {
  const std::int64_t capacity = PageBlock::capacity_for(bytes);
  const auto fit = free_blocks_.lower_bound(bytes);
  if (fit == free_blocks_.end() || fit->first > capacity + capacity / 8) return {};
  PageBlock block = std::move(fit->second);
  free_blocks_.erase(fit);
  cached_bytes_ -= block.capacity();
  return block;
}

/// Of new pages, as far as the bound has room for these. Empty where the system has none.
PageBlock CpuAllocator::new_block(std::int64_t bytes) {
  const std::int64_t capacity = PageBlock::capacity_for(bytes), spare = std::max(most_live_bytes_ / 8, kLeastSpare);
  const std::int64_t allowed = std::max(most_live_bytes_ + spare, live_bytes_ + capacity);
  const std::int64_t cached_limit = allowed - live_bytes_ - capacity;
  PageBlock block = blank_block(bytes);
  if (block.capacity() > 0) {
    if (cached_bytes_ > cached_limit) gather_pages(block, std::min(capacity, cached_bytes_ - cached_limit));
    trim_to(cached_limit);
  }
  if (block.capacity() == capacity) return block;
  trim_to(0);
  return blank_block(bytes);
}

/// In the file, if there is one with room.
PageBlock CpuAllocator::blank_block(std::int64_t bytes) const {
  if (file_)
    if (PageBlock block(bytes, file_); block.capacity() > 0) return block;
  return PageBlock(bytes);
}

/// Of the largest free blocks, at least `bytes` where they can be moved.
void CpuAllocator::gather_pages(PageBlock& into, std::int64_t bytes) {
  bytes = round_up(bytes, PageBlock::kPage);
  for (std::int64_t gathered = 0; gathered < bytes && !free_blocks_.empty();) {
    PageBlock donor = take_largest();
    const std::int64_t more = into.take_pages(donor, gathered, bytes - gathered);
    gathered += more;
    if (donor.capacity() > 0) keep(std::move(donor));
    if (more == 0) return;
  }
}

void CpuAllocator::deallocate(void* block, std::int64_t bytes, std::span<const Stream> /*streams*/) noexcept {
  if (bytes < kLargeBlock) return std::free(block);
  const std::lock_guard lock(mutex_);
  const auto live = live_blocks_.find(block);
  PageBlock pages = std::move(live->second);
  live_blocks_.erase(live);
  live_bytes_ -= pages.capacity();
  keep(std::move(pages));
}

void CpuAllocator::keep(PageBlock block) noexcept {
  const std::int64_t capacity = block.capacity();
  void* const start = block.start();
  if (file_ && !block.is_in_file() && PageBlock::may_be_in_file()) return;  // the next is to be
  allow(start, capacity);
  try {
    free_blocks_.emplace(capacity, std::move(block));
  } catch (const std::bad_alloc&) {
    return;  // there is no memory to note it: it goes back to the system
  }
  forbid(start, capacity);
  cached_bytes_ += capacity;
}

std::int64_t CpuAllocator::cached_bytes() const {
  const std::lock_guard lock(mutex_);
  return cached_bytes_;
}

void CpuAllocator::release_cached() noexcept {
  const std::lock_guard lock(mutex_);
  trim_to(0);
}

std::string CpuAllocator::share_blocks() {
  const std::lock_guard lock(mutex_);
  if (file_) return "";
  try {
    file_ = std::make_shared<PageFile>();
  } catch (const Error& error) {
    return error.what();
  }
  trim_to(0);
  return "";
}

int CpuAllocator::shared_file() const {
  const std::lock_guard lock(mutex_);
  return file_ ? file_->descriptor() : -1;
}

std::optional<CpuAllocator::PlaceInFile> CpuAllocator::find_shared(const void* data, std::int64_t bytes) const {
  const auto* const begin = static_cast<const std::byte*>(data);
  const std::lock_guard lock(mutex_);
  if (!file_) return std::nullopt;
  auto next = live_blocks_.upper_bound(const_cast<void*>(data));
  if (next == live_blocks_.begin()) return std::nullopt;
  const PageBlock& block = std::prev(next)->second;
  const std::int64_t offset = begin - block.start();
  if (!block.is_in_file() || bytes > block.capacity() - offset) return std::nullopt;
  PlaceInFile place{.layout = block.layout(), .offset = offset};
  for (const PageBlock::Part& part : block.parts()) {
    FileRange* const last = place.block.count > 0 ? &place.block.ranges[place.block.count - 1] : nullptr;
    if (last != nullptr && last->begin + last->bytes == part.in_file) {
      last->bytes += part.bytes;
    } else if (place.block.count == BlockInFile::kMostRanges) {
      return std::nullopt;
    } else {
      place.block.ranges[place.block.count++] = {part.in_file, part.bytes};
    }
  }
  return place;
}

void CpuAllocator::hold_during_fork() {
  tandem::hold_during_fork(mutex_);
  call_after_fork([] { cpu_allocator().leave_file(); });
}

/// Of a process made by fork(): its parent's file is the parent's.
void CpuAllocator::leave_file() noexcept {
  if (!file_) return;
  for (auto& [start, block] : live_blocks_) block.leave_file();
  for (auto& [capacity, block] : free_blocks_) block.leave_file();
  file_ = nullptr;
}

PageBlock CpuAllocator::take_largest() {
  const auto largest = std::prev(free_blocks_.end());
  PageBlock block = std::move(largest->second);
  free_blocks_.erase(largest);
  cached_bytes_ -= block.capacity();
  allow(block.start(), block.capacity());
  return block;
}

/// Gives back what is too much, and no more where pages can be given back by themselves.
void CpuAllocator::trim_to(std::int64_t cached_limit) noexcept {
  cached_limit = std::max<std::int64_t>(cached_limit, 0);
  while (cached_bytes_ > cached_limit) {
    const std::int64_t excess = round_up(cached_bytes_ - cached_limit, PageBlock::kPage);
    PageBlock largest = take_largest();
    if (!largest.has_movable_pages() || excess >= largest.capacity()) continue;
    largest.give_back_end(excess);
    keep(std::move(largest));
  }
}

}  // namespace tandem
