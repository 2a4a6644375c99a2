// The CPU allocator: the system's memory, with large blocks kept between training steps.
#pragma once

#include "tandem/core/allocator.h"
#include "tandem/core/page_block.h"
#include "tandem/core/page_file.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace tandem {

/// A training step asks for the same large blocks again and again; fresh pages from the system cost a fault and a
/// clearing each (about 5 ms for 32 MiB). So large blocks are mapped with huge pages where the system has them and kept
/// for reuse, best fit first. What is cached is bounded: live and cached bytes together never exceed the most that was
/// ever live by more than one block and 1/8 of it, or 64 MiB where that is more. Where a new block would exceed that,
/// it takes over pages of cached ones; what is still too much goes back to the system, from the largest ones.
class CpuAllocator final : public Allocator {
 public:
  /// From so many bytes on blocks are kept for reuse.
  static constexpr std::int64_t kLargeBlock = std::int64_t{32} << 10;

  /// Where a block is in the file that others map. Most have one part; where sizes vary, each page of 2 MiB may be one.
  struct BlockInFile {
    static constexpr std::size_t kMostRanges = 32;

    std::size_t count = 0;
    std::array<FileRange, kMostRanges> ranges = {};

    bool operator==(const BlockInFile&) const = default;
  };
  /// Data that begin so many bytes into a block.
  struct PlaceInFile {
    std::uint64_t layout = 0;  ///< of the block: what has the same is in the same ranges
    std::int64_t offset = 0;
    BlockInFile block = {};
  };

  ~CpuAllocator() override;
  void* allocate(std::int64_t bytes) override;
  void deallocate(void* block, std::int64_t bytes, std::span<const Stream> streams = {}) noexcept override;
  std::int64_t cached_bytes() const override;
  void release_cached() noexcept override;

  /// From now on new blocks of kLargeBlock bytes and more are in a file that other processes of the host can map; what
  /// is cached goes back to the system. Why not, or "".
  std::string share_blocks();
  /// The file of share_blocks(), or -1.
  int shared_file() const;
  /// Where these bytes of one block are in that file. Nothing where they are not, or the block has too many parts.
  std::optional<PlaceInFile> find_shared(const void* data, std::int64_t bytes) const;

  /// For an allocator that never goes: lets a process made by fork() use it further, whatever other threads were doing.
  void hold_during_fork();

 private:
  PageBlock cached_block(std::int64_t bytes);
  PageBlock new_block(std::int64_t bytes);
  PageBlock blank_block(std::int64_t bytes) const;
  void leave_file() noexcept;
  void gather_pages(PageBlock& into, std::int64_t bytes);
  PageBlock take_largest();
  void keep(PageBlock block) noexcept;
  void trim_to(std::int64_t cached_limit) noexcept;

  mutable std::mutex mutex_;
  std::shared_ptr<PageFile> file_;                      // of shared blocks
  std::multimap<std::int64_t, PageBlock> free_blocks_;  // by capacity
  std::map<void*, PageBlock> live_blocks_;              // large ones
  std::int64_t live_bytes_ = 0;
  std::int64_t most_live_bytes_ = 0;
  std::int64_t cached_bytes_ = 0;
};

/// That of all CPU tensors.
CpuAllocator& cpu_allocator();

}  // namespace tandem
