// Shared segments that tensors live in: each rank has a part, and all ranks see every part.
#pragma once

#include "tandem/comm/transports/shared_memory/shared_memory.h"
#include "tandem/core/storage.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace tandem::comm {

/// Parts begin where pages do.
constexpr std::int64_t kPageBytes = 4096;

class SharedParts {
 public:
  explicit SharedParts(int rank) : rank_(rank) {}

  struct Place {
    std::int32_t segment = 0;  ///< 0: in none
    std::int64_t offset = 0;
  };

  /// Bytes of a part that holds so many.
  static std::int64_t part_bytes(std::int64_t bytes);
  /// Counts the segments alike on all ranks. The storage is this rank's part, of `bytes` bytes; it keeps the memory.
  std::shared_ptr<Storage> add(const std::shared_ptr<SharedMemory>& memory, std::int64_t bytes);
  /// Where these bytes are in this rank's part of a segment.
  Place find(const void* data, std::int64_t bytes);
  /// A segment that has a storage still, and a rank's part of it.
  std::shared_ptr<SharedMemory> memory(std::int32_t segment) const;
  std::byte* part(std::int32_t segment, int rank) const;

 private:
  struct Segment {
    std::int32_t number = 0;
    std::weak_ptr<SharedMemory> memory;
    std::byte* data = nullptr;
    std::int64_t part_bytes = 0;
  };
  const Segment& segment(std::int32_t number) const;

  int rank_;
  std::int32_t made_ = 0;
  std::vector<Segment> segments_;
};

}  // namespace tandem::comm
