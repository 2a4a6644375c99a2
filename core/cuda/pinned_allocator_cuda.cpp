// Page-locked host memory. Locking pages costs the system far more than a training step's copy, so blocks are kept.
#include "tandem/core/cuda/check.h"
#include "tandem/core/cuda/recording.h"
#include "tandem/core/cuda/runtime.h"
#include "tandem/core/memory.h"

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace tandem::cuda {

namespace {

/// Blocks in whole pages, best fit first. A block that streams may still use waits until they are past it. What is
/// cached is bounded: a block that comes back to more than kMostCached bytes is unlocked.
class PinnedAllocator final : public Allocator {
 public:
  void* allocate(std::int64_t bytes) override {
    require(bytes > 0 && bytes <= std::int64_t{1} << 46, "cannot allocate {} bytes of pinned memory", bytes);
    require_no_recording("taking pinned memory");
    const std::lock_guard lock(mutex_);
    const std::int64_t capacity = whole_pages(bytes);
    void* block = reuse_free(capacity);
    if (block != nullptr) return block;
    reclaim();
    block = reuse_free(capacity);
    if (block != nullptr) return block;
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

  void deallocate(void* start, std::int64_t /*bytes*/, std::span<const Stream> streams) noexcept override {
    const std::lock_guard lock(mutex_);
    const auto live = capacities_.find(start);
    const auto block = std::make_shared<Waiting>(Waiting{start, live->second, streams.size()});
    capacities_.erase(live);
    try {
      std::vector<Use> uses;
      for (const Stream& stream : streams) {
        uses.push_back({block, {}});
        set_mark(stream, uses.back());
      }
      const bool can_wait =
          !is_recording() && std::all_of(uses.begin(), uses.end(), [](const Use& use) { return use.mark.has_value(); });
      if (can_wait && cached_bytes_ + block->capacity > kMostCached) {
        for (const Use& use : uses) use.mark->synchronize();
        return unlock(start);
      }
      cached_bytes_ += block->capacity;
      if (uses.empty()) free_.emplace(block->capacity, start);
      for (std::size_t i = 0; i < uses.size(); ++i) uses_of(streams[i]).push_back(std::move(uses[i]));
    } catch (const Error&) {
      // The context is lost, or the process ends: nobody can tell any more when the block is idle.
    }
  }

  std::int64_t cached_bytes() const override {
    const std::lock_guard lock(mutex_);
    return cached_bytes_;
  }

  void release_cached() noexcept override {
    const std::lock_guard lock(mutex_);
    if (is_recording()) return;
    try {
      for (auto& [stream, uses] : uses_) {
        for (Use& use : uses) set_mark(stream, use);
        if (!is_recorded(stream)) stream.synchronize();
      }
      reclaim();
    } catch (const Error&) {
      return;
    }
    for (const auto& [capacity, start] : free_) {
      unlock(start);
      cached_bytes_ -= capacity;
    }
    free_.clear();
  }

 private:
  /// A block that was freed while streams used it.
  struct Waiting {
    void* start;
    std::int64_t capacity;
    std::size_t streams;  // that are not past it yet
  };
  struct Use {
    std::shared_ptr<Waiting> block;
    std::optional<Event> mark;  // none while the stream is being recorded
  };
  struct StreamUses {
    Stream stream;
    std::deque<Use> uses;  // in the order of the stream
  };

  static constexpr std::int64_t kMostCached = std::int64_t{256} << 20;

  static std::int64_t whole_pages(std::int64_t bytes) { return (bytes + 4095) / 4096 * 4096; }

  /// The smallest free block of this capacity, or up to an eighth more; null if there is none.
  void* reuse_free(std::int64_t capacity) {
    const auto fit = free_.lower_bound(capacity);
    if (fit == free_.end() || fit->first > capacity + capacity / 8) return nullptr;
    void* const start = fit->second;
    capacities_.emplace(start, fit->first);
    cached_bytes_ -= fit->first;
    free_.erase(fit);
    return start;
  }

  /// Frees the blocks that all their streams are past. Streams pass their marks in order, so of each one only the first
  /// mark that it has not passed is asked.
  void reclaim() {
    for (auto& [stream, uses] : uses_) {
      while (!uses.empty() && is_past(stream, uses.front())) {
        Waiting& block = *uses.front().block;
        if (--block.streams == 0) free_.emplace(block.capacity, block.start);
        uses.pop_front();
      }
    }
    std::erase_if(uses_, [](const StreamUses& one) { return one.uses.empty(); });
  }

  static bool is_past(const Stream& stream, Use& use) {
    set_mark(stream, use);
    return use.mark && use.mark->is_done();
  }

  /// Puts a mark behind the use, unless that has been done or must wait for the end of a recording.
  static void set_mark(const Stream& stream, Use& use) {
    if (!use.mark && !is_recorded(stream)) use.mark.emplace().record(stream);
  }

  std::deque<Use>& uses_of(const Stream& stream) {
    for (auto& [known, uses] : uses_)
      if (known == stream) return uses;
    return uses_.emplace_back(StreamUses{stream, {}}).uses;
  }

  static void unlock(void* start) noexcept {
    if (cudaFreeHost(start) != cudaSuccess) cudaGetLastError();
  }

  mutable std::mutex mutex_;
  std::multimap<std::int64_t, void*> free_;   // by capacity
  std::map<void*, std::int64_t> capacities_;  // of live blocks
  std::vector<StreamUses> uses_;              // of blocks that wait
  std::int64_t cached_bytes_ = 0;             // of free and waiting blocks
};

}  // namespace

Allocator& pinned_allocator() {
  // Never destroyed: storages in static objects may outlive every other static.
  static PinnedAllocator& allocator = *new PinnedAllocator;
  return allocator;
}

}  // namespace tandem::cuda
