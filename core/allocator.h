// Where storages get their memory from: one allocator per kind of device.
#pragma once

#include "core/device.h"

#include <cstdint>

namespace tandem {

/// Hands out blocks of one device's memory. Thread-safe.
class Allocator {
 public:
  virtual ~Allocator() = default;

  /// At least `bytes` > 0 bytes, aligned to kAlignment, contents undefined. Throws Error when there is none left.
  virtual void* allocate(std::int64_t bytes) = 0;

  /// Takes back a block from allocate(); `bytes` is the size that was asked for.
  virtual void deallocate(void* block, std::int64_t bytes) noexcept = 0;

  /// Bytes kept for later use but in no storage.
  virtual std::int64_t cached_bytes() const { return 0; }

  /// Gives cached blocks back to the system.
  virtual void release_cached() noexcept {}
};

/// Every block starts on a multiple of this many bytes.
constexpr std::int64_t kAlignment = 64;

/// The allocator of a device; throws Error where this build or machine has no such device.
Allocator& allocator_for(Device device);

}  // namespace tandem
