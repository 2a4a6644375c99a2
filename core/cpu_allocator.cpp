// The CPU allocator's cache of large blocks.
#include "core/cpu_allocator.h"

#include "core/error.h"

#include <algorithm>
#include <cstdlib>
#include <new>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace tandem {

namespace {

constexpr std::int64_t kLargeBlock = std::int64_t{256} << 10;
constexpr std::int64_t kHugePage = std::int64_t{2} << 20;

std::int64_t round_up(std::int64_t bytes, std::int64_t unit) { return (bytes + unit - 1) / unit * unit; }

void* system_allocate(std::int64_t bytes) {
  const bool huge = bytes >= 2 * kHugePage;
  const std::int64_t alignment = huge ? kHugePage : kAlignment;
  void* block =
      std::aligned_alloc(static_cast<std::size_t>(alignment), static_cast<std::size_t>(round_up(bytes, alignment)));
#if defined(__linux__)
  if (huge && block != nullptr) madvise(block, static_cast<std::size_t>(round_up(bytes, alignment)), MADV_HUGEPAGE);
#endif
  return block;
}

}  // namespace

CpuAllocator::~CpuAllocator() { release_cached(); }

void* CpuAllocator::allocate(std::int64_t bytes) {
  require(bytes > 0 && bytes <= std::int64_t{1} << 46, "cannot allocate {} bytes of CPU memory", bytes);
  if (bytes < kLargeBlock) {
    if (void* block = system_allocate(bytes)) return block;
    fail("out of CPU memory: {} bytes asked for", bytes);
  }
  const std::lock_guard lock(mutex_);
  std::int64_t capacity = round_up(bytes, bytes >= 2 * kHugePage ? kHugePage : 4096);
  void* block = nullptr;
  if (const auto fit = free_blocks_.lower_bound(bytes);
      fit != free_blocks_.end() && fit->first <= capacity + capacity / 8) {
    capacity = fit->first;
    block = fit->second;
    free_blocks_.erase(fit);
    cached_bytes_ -= capacity;
  } else {
    const std::int64_t allowed = std::max(most_live_bytes_ + most_live_bytes_ / 8, live_bytes_ + capacity);
    trim_to(allowed - live_bytes_ - capacity);
    block = system_allocate(capacity);
    if (block == nullptr) {
      trim_to(0);
      block = system_allocate(capacity);
    }
    if (block == nullptr) fail("out of CPU memory: {} bytes asked for, {} in use", bytes, live_bytes_);
  }
  live_capacities_.emplace(block, capacity);
  live_bytes_ += capacity;
  most_live_bytes_ = std::max(most_live_bytes_, live_bytes_);
  return block;
}

void CpuAllocator::deallocate(void* block, std::int64_t bytes) noexcept {
  if (bytes < kLargeBlock) return std::free(block);
  const std::lock_guard lock(mutex_);
  const auto live = live_capacities_.find(block);
  const std::int64_t capacity = live->second;
  live_capacities_.erase(live);
  live_bytes_ -= capacity;
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

void CpuAllocator::trim_to(std::int64_t cached_limit) noexcept {
  while (cached_bytes_ > std::max<std::int64_t>(cached_limit, 0)) {
    const auto largest = std::prev(free_blocks_.end());
    cached_bytes_ -= largest->first;
    std::free(largest->second);
    free_blocks_.erase(largest);
  }
}

Allocator& allocator_for(Device device) {
  // Never destroyed: storages in static objects may outlive every other static.
  static CpuAllocator& cpu = *new CpuAllocator;
  require(device.type == DeviceType::cpu, "this build has no device {}; use the CPU", name_of(device));
  return cpu;
}

}  // namespace tandem
