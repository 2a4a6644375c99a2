// Where storages get their memory from: one allocator per device, and one for pinned host memory.
// Example:
//     allocator_for(Device{}).release_cached();  // what was kept for later goes back to the system
//     const std::int64_t kept = allocator_for(Device{}).cached_bytes();  // 0
#pragma once

#include "tandem/core/device.h"
#include "tandem/core/stream.h"

#include <cstdint>
#include <span>

namespace tandem {

/// Hands out blocks of one device's memory. Thread-safe.
class Allocator {
 public:
  virtual ~Allocator() = default;

  /// At least `bytes` > 0 bytes, aligned to kAlignment, contents undefined. Device memory may be used by work on the
  /// calling thread's current stream. Throws Error when there is none left.
  virtual void* allocate(std::int64_t bytes) = 0;

  /// Takes back a block from allocate(); `bytes` is the size that was asked for. `streams` may still hold work that
  /// uses the block; for device memory the first is the one that was current when it was allocated.
  virtual void deallocate(void* block, std::int64_t bytes, std::span<const Stream> streams) noexcept = 0;

  /// Bytes kept for later use but in no storage.
  virtual std::int64_t cached_bytes() const = 0;

  /// Gives cached blocks back to the system, and the memory of CUDA graphs, which their next launches take anew. Waits
  /// for all work of a GPU.
  virtual void release_cached() noexcept = 0;
};

/// Every block starts on a multiple of this many bytes.
constexpr std::int64_t kAlignment = 64;

/// The allocator of a device. Throws Error where this build or machine has no such device.
Allocator& allocator_for(Device device);

/// Page-locked host memory, which copies to and from a GPU without waiting; the CPU's plain memory where there is no
/// GPU. Its bytes count as the CPU's. It belongs to the context of the GPU that this thread's CUDA calls are for: the
/// one of its last StreamScope or work.
Allocator& pinned_allocator();

}  // namespace tandem
