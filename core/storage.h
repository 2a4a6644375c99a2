// A block of device memory with an owner count, a memory tag and a version.
#pragma once

#include "core/device.h"
#include "core/memory.h"

#include <cstdint>
#include <memory>

namespace tandem {

/// Owns `bytes` of one device's memory; tensors share it through std::shared_ptr. Contents start undefined.
class Storage {
 public:
  Storage(std::int64_t bytes, Device device, MemoryTag tag);
  ~Storage();
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  void* data() const { return data_; }
  std::int64_t bytes() const { return bytes_; }
  Device device() const { return device_; }
  MemoryTag tag() const { return tag_; }

  /// Moves the bytes of this storage to another purpose's account.
  void set_tag(MemoryTag tag);

  /// Counts in-place changes, so that autograd can tell whether a saved tensor is still what it was.
  std::uint64_t version() const { return version_; }
  void bump_version() { ++version_; }

 private:
  void* data_ = nullptr;
  std::int64_t bytes_;
  Device device_;
  MemoryTag tag_;
  std::uint64_t version_ = 0;
};

}  // namespace tandem
