// The CPU allocator's cache of large blocks.
#include "tandem/core/cpu_allocator.h"

#include "tandem/core/error.h"
#include "tandem/core/fork.h"
#include "tandem/core/memory.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <new>

#if defined(__linux__)
#include <sys/mman.h>
#endif
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace tandem {

namespace {

constexpr std::int64_t kLargeBlock = std::int64_t{32} << 10;
// Small networks have blocks of many sizes; with less, half of their step goes into mapping pages (docs/results/).
constexpr std::int64_t kLeastSpare = std::int64_t{64} << 20;
constexpr std::int64_t kHugePage = std::int64_t{2} << 20;

std::int64_t round_up(std::int64_t bytes, std::int64_t unit) { return (bytes + unit - 1) / unit * unit; }

#if defined(__linux__) && !defined(__SANITIZE_ADDRESS__)
// Large blocks come from the kernel itself: malloc would keep what is freed on its heap, and cut it up.
void* allocate_large(std::int64_t capacity) {
  const bool huge = capacity >= 2 * kHugePage;
  const std::int64_t spare = huge ? kHugePage : 0;  // for alignment
  void* const mapped = mmap(nullptr, static_cast<std::size_t>(capacity + spare), PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  auto* const start = static_cast<std::byte*>(mapped);
  const std::int64_t misaligned = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(start) % kHugePage);
  const std::int64_t before = huge && misaligned != 0 ? kHugePage - misaligned : 0;
  if (before > 0) munmap(start, static_cast<std::size_t>(before));
  if (spare > before) munmap(start + before + capacity, static_cast<std::size_t>(spare - before));
  if (huge) madvise(start + before, static_cast<std::size_t>(capacity), MADV_HUGEPAGE);
  return start + before;
}

void free_large(void* block, std::int64_t capacity) noexcept { munmap(block, static_cast<std::size_t>(capacity)); }
#else
void* allocate_large(std::int64_t capacity) {
  const std::int64_t alignment = capacity >= 2 * kHugePage ? kHugePage : kAlignment;
  return std::aligned_alloc(static_cast<std::size_t>(alignment), static_cast<std::size_t>(capacity));
}

void free_large(void* block, std::int64_t /*capacity*/) noexcept { std::free(block); }
#endif

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
    fail("out of CPU memory: {} bytes asked for", bytes);
  }
  std::unique_lock lock(mutex_);
  std::int64_t capacity = round_up(bytes, bytes >= 2 * kHugePage ? kHugePage : 4096);
  void* block = nullptr;
  if (const auto fit = free_blocks_.lower_bound(bytes);
      fit != free_blocks_.end() && fit->first <= capacity + capacity / 8) {
    capacity = fit->first;
    block = fit->second;
    free_blocks_.erase(fit);
    cached_bytes_ -= capacity;
  } else {
    const std::int64_t spare = std::max(most_live_bytes_ / 8, kLeastSpare);
    const std::int64_t allowed = std::max(most_live_bytes_ + spare, live_bytes_ + capacity);
    trim_to(allowed - live_bytes_ - capacity);
    block = allocate_large(capacity);
    if (block == nullptr) {
      trim_to(0);
      block = allocate_large(capacity);
    }
    if (block == nullptr) {
      const std::int64_t in_use = live_bytes_;
      lock.unlock();  // nobody takes another mutex with this one held
      fail("out of CPU memory: {} bytes asked for, {} in use: {}", bytes, in_use, largest_memory_tags(Device{}));
    }
  }
  forbid(block, capacity);
  allow(block, bytes);
  live_capacities_.emplace(block, capacity);
  live_bytes_ += capacity;
  most_live_bytes_ = std::max(most_live_bytes_, live_bytes_);
  return block;
}

void CpuAllocator::deallocate(void* block, std::int64_t bytes, std::span<const Stream> /*streams*/) noexcept {
  if (bytes < kLargeBlock) return std::free(block);
  const std::lock_guard lock(mutex_);
  const auto live = live_capacities_.find(block);
  const std::int64_t capacity = live->second;
  live_capacities_.erase(live);
  live_bytes_ -= capacity;
  forbid(block, capacity);
  free_blocks_.emplace(capacity, block);
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

void CpuAllocator::hold_during_fork() { tandem::hold_during_fork(mutex_); }

void CpuAllocator::trim_to(std::int64_t cached_limit) noexcept {
  while (cached_bytes_ > std::max<std::int64_t>(cached_limit, 0)) {
    const auto largest = std::prev(free_blocks_.end());
    cached_bytes_ -= largest->first;
    allow(largest->second, largest->first);
    free_large(largest->second, largest->first);
    free_blocks_.erase(largest);
  }
}

}  // namespace tandem
