// Numbers that the host sets, in the memory of the devices whose kernels read them.
#pragma once

#include "tandem/core/stream.h"
#include "tandem/core/tensor.h"

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace tandem {

/// A copy of a few numbers for each device that asks: where work is recorded in a WorkGraph, upload() before a launch
/// makes that launch go by other numbers. On a GPU a change is one small copy that nobody waits for; nothing is copied
/// where nothing has changed. The numbers are the owner's, and given to each call. Example:
///     DeviceCopies copies("example", DType::f64);
///     std::vector<double> numbers{1, 2};
///     const Tensor here = copies.on(Device{}, std::as_bytes(std::span(numbers)));
///     numbers[1] = 3;
///     copies.upload(std::as_bytes(std::span(numbers)));
///     const std::vector<double> read = here.to_vector<double>();  // {1, 3}
class DeviceCopies {
 public:
  /// `owner` begins messages, and is a text that stays; `dtype`: of the numbers.
  DeviceCopies(std::string_view owner, DType dtype) : owner_(owner), dtype_(dtype) {}

  /// Copies are the one owner's: one that is made from another begins without any, and one that is assigned to keeps
  /// its own. They move with their owner.
  /// @{
  DeviceCopies(const DeviceCopies& other) : owner_(other.owner_), dtype_(other.dtype_) {}
  DeviceCopies& operator=(const DeviceCopies& /*other*/) { return *this; }
  DeviceCopies(DeviceCopies&&) = default;
  DeviceCopies& operator=(DeviceCopies&&) = default;
  ~DeviceCopies() = default;
  /// @}

  /// The numbers on that device for kernels on its current stream, rank 1. Copies them there if they have changed. The
  /// memory stays the same one for as long as the current stream does, and their count. Throws Error where a copy to a
  /// GPU is due while this thread records work.
  Tensor on(Device device, std::span<const std::byte> numbers);

  /// What on() copies, for all devices that have copies already. Throws Error, copying nothing more, for one whose
  /// current stream is not that of on().
  void upload(std::span<const std::byte> numbers);

  /// Whether on() was called for the device.
  bool has(Device device) const;

 private:
  /// What a device has.
  struct Copy {
    Stream stream;                   // that it was made on, and is read on
    std::vector<std::byte> numbers;  // that are there; empty: none yet
    Tensor tensor;
  };

  void check_may_copy(Device device) const;
  Copy& copy_on(Device device, std::size_t bytes);
  void refresh(Copy& copy, std::span<const std::byte> numbers) const;

  std::string_view owner_;
  DType dtype_;
  std::vector<Copy> copies_;  // one of each device
};

}  // namespace tandem
