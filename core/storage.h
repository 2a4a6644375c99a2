// A block of device memory with an owner count, a memory tag and a version.
#pragma once

#include "tandem/core/device.h"
#include "tandem/core/memory.h"
#include "tandem/core/stream.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace tandem {

/// Owns `bytes` of one device's memory; tensors share it through std::shared_ptr. Contents start undefined.
/// Device memory belongs to the stream that was current when it was made: it is freed in the order of that stream.
/// Example:
///     #include "tandem/core/tensor.h"
///     const Tensor images = Tensor::empty({10, 3, 32, 32}, {.dtype = DType::u8});
///     images.storage()->set_tag(MemoryTag::data);
///     const std::int64_t bytes = images.storage()->bytes();  // 30720
class Storage {
 public:
  /// `pinned`: page-locked host memory, for asynchronous copies. Throws Error for pinned memory of another device than
  /// the CPU, for a device that is not there, and when memory runs out.
  Storage(std::int64_t bytes, Device device, MemoryTag tag, bool pinned = false);
  /// Host memory that `owner` keeps, for tensors in memory that other processes see as well. Throws Error without one.
  Storage(void* data, std::int64_t bytes, MemoryTag tag, std::shared_ptr<void> owner);
  ~Storage();
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  /// The first byte, how many there are, where they are, what they serve, and whether they are page-locked.
  /// @{
  void* data() const { return data_; }
  std::int64_t bytes() const { return bytes_; }
  Device device() const { return device_; }
  MemoryTag tag() const { return tag_; }
  bool is_pinned() const { return pinned_; }
  /// @}

  /// Moves the bytes of this storage to another purpose's account.
  void set_tag(MemoryTag tag);

  /// Tells that `stream` was given work that uses these bytes: they will not be used for anything else before that is
  /// done. Needed for every stream but the one they belong to.
  void record_stream(const Stream& stream);

  /// Counts in-place changes, so that autograd can tell whether a saved tensor is still what it was.
  std::uint64_t version() const { return version_; }
  /// Tells autograd of an in-place change.
  void bump_version() { ++version_; }

 private:
  void* data_ = nullptr;
  std::int64_t bytes_;
  Device device_;
  MemoryTag tag_;
  bool pinned_;
  std::vector<Stream> streams_;  // that use the bytes; for device memory first the one it belongs to
  std::uint64_t version_ = 0;
  std::shared_ptr<void> owner_;  // of memory that is not an allocator's
};

}  // namespace tandem
