// Page-locked host memory. Locking pages costs the system far more than a training step's copy, so blocks are kept.
#include "core/cuda/check.h"
#include "core/cuda/runtime.h"
#include "core/memory.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <vector>

namespace tandem::cuda {

namespace {

/// Blocks in whole pages, best fit first. A block that a copy may still use is kept aside until its events are passed.
/// What is cached is bounded: a block that comes back to more than kMostCached bytes is unlocked.
class PinnedAllocator final : public Allocator {
 public:
  void* allocate(std::int64_t bytes) override {
    require(bytes > 0 && bytes <= std::int64_t{1} << 46, "cannot allocate {} bytes of pinned memory", bytes);
    const std::lock_guard lock(mutex_);
    const std::int64_t capacity = whole_pages(bytes);
    const std::int64_t largest_fit = capacity + capacity / 8;
    for (auto fit = free_.lower_bound(capacity); fit != free_.end() && fit->first <= largest_fit; ++fit) {
      if (!fit->second.is_idle()) continue;
      void* const block = fit->second.start;
      capacities_.emplace(block, fit->first);
      cached_bytes_ -= fit->first;
      free_.erase(fit);
      return block;
    }
    void* block = nullptr;
    const cudaError_t status = cudaMallocHost(&block, static_cast<std::size_t>(capacity));
    if (status == cudaErrorMemoryAllocation) {
      cudaGetLastError();
      fail("out of pinned CPU memory: {} ({} bytes) asked for; in use: {}", format_memory(bytes), bytes,
           largest_memory_tags(Device{}));
    }
    throw_if_failed(status, "cudaMallocHost", std::source_location::current());
    capacities_.emplace(block, capacity);
    return block;
  }

  void deallocate(void* block, std::int64_t /*bytes*/, std::span<const Stream> streams) noexcept override {
    const std::lock_guard lock(mutex_);
    const auto live = capacities_.find(block);
    const std::int64_t capacity = live->second;
    capacities_.erase(live);
    FreeBlock freed{block, {}};
    try {
      for (const Stream& stream : streams) freed.uses.emplace_back().record(stream);
    } catch (const Error&) {
      return;  // the context is lost, or the process ends: nobody can tell any more when the block is idle
    }
    if (cached_bytes_ + capacity > kMostCached) return unlock(freed);
    cached_bytes_ += capacity;
    free_.emplace(capacity, std::move(freed));
  }

  std::int64_t cached_bytes() const override {
    const std::lock_guard lock(mutex_);
    return cached_bytes_;
  }

  void release_cached() noexcept override {
    const std::lock_guard lock(mutex_);
    for (auto& [capacity, block] : free_) unlock(block);
    free_.clear();
    cached_bytes_ = 0;
  }

 private:
  struct FreeBlock {
    void* start = nullptr;
    std::vector<Event> uses;

    bool is_idle() const {
      return std::all_of(uses.begin(), uses.end(), [](const Event& use) { return use.is_done(); });
    }
  };

  static constexpr std::int64_t kMostCached = std::int64_t{256} << 20;

  static std::int64_t whole_pages(std::int64_t bytes) { return (bytes + 4095) / 4096 * 4096; }

  static void unlock(const FreeBlock& block) noexcept {
    try {
      for (const Event& use : block.uses) use.synchronize();
    } catch (const Error&) {
      return;
    }
    if (cudaFreeHost(block.start) != cudaSuccess) cudaGetLastError();
  }

  mutable std::mutex mutex_;
  std::multimap<std::int64_t, FreeBlock> free_;  // by capacity
  std::map<void*, std::int64_t> capacities_;     // of live blocks
  std::int64_t cached_bytes_ = 0;
};

}  // namespace

Allocator& pinned_allocator() {
  // Never destroyed: storages in static objects may outlive every other static.
  static PinnedAllocator& allocator = *new PinnedAllocator;
  return allocator;
}

}  // namespace tandem::cuda
