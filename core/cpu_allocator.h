// The CPU allocator: the system's memory, with large blocks kept between training steps.
#pragma once

#include "tandem/core/allocator.h"
#include "tandem/core/page_block.h"

#include <map>
#include <mutex>

namespace tandem {

/// A training step asks for the same large blocks again and again; fresh pages from the system cost a fault and a
/// clearing each (about 5 ms for 32 MiB). So large blocks are mapped with huge pages where the system has them and kept
/// for reuse, best fit first. What is cached is bounded: live and cached bytes together never exceed the most that was
/// ever live by more than one block and 1/8 of it, or 64 MiB where that is more. Where a new block would exceed that,
/// it takes over pages of cached ones; what is still too much goes back to the system, from the largest ones.
class CpuAllocator final : public Allocator {
 public:
  ~CpuAllocator() override;
  void* allocate(std::int64_t bytes) override;
  void deallocate(void* block, std::int64_t bytes, std::span<const Stream> streams = {}) noexcept override;
  std::int64_t cached_bytes() const override;
  void release_cached() noexcept override;

  /// For an allocator that never goes: lets a process made by fork() use it further, whatever other threads were doing.
  void hold_during_fork();

 private:
  PageBlock cached_block(std::int64_t bytes);
  PageBlock new_block(std::int64_t bytes);
  void gather_pages(PageBlock& into, std::int64_t bytes);
  PageBlock take_largest();
  void keep(PageBlock block) noexcept;
  void trim_to(std::int64_t cached_limit) noexcept;

  mutable std::mutex mutex_;
  std::multimap<std::int64_t, PageBlock> free_blocks_;  // by capacity
  std::map<void*, PageBlock> live_blocks_;              // large ones
  std::int64_t live_bytes_ = 0;
  std::int64_t most_live_bytes_ = 0;
  std::int64_t cached_bytes_ = 0;
};

}  // namespace tandem
