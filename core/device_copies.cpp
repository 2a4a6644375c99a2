// Numbers of the host, copied where they have changed.
#include "tandem/core/device_copies.h"

#include "tandem/core/cuda/recording.h"
#include "tandem/core/error.h"
#include "tandem/core/has_cuda.h"
#include "tandem/core/memory.h"
#include "tandem/core/not_repeatable.h"
#include "tandem/core/out.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace tandem {

void DeviceCopies::check_may_copy(Device device) const {
  if constexpr (kHasCuda)
    if (device.type == DeviceType::cuda)
      cuda::require_no_recording(
          fmt::format("{}: copying its numbers to {}, as upload() does,", owner_, name_of(device)));
}

DeviceCopies::Copy& DeviceCopies::copy_on(Device device, std::size_t bytes) {
  const auto found = std::ranges::find_if(copies_, [&](const Copy& copy) { return copy.stream.device() == device; });
  const Stream stream = current_stream(device);
  const std::int64_t count = static_cast<std::int64_t>(bytes) / size_of(dtype_);
  if (found != copies_.end() && found->stream == stream && found->tensor.numel() == count) return *found;
  check_may_copy(device);
  const MemoryTagScope scope(MemoryTag::workspace);
  // Kernels on the stream of before may still read what is there.
  Copy copy{.stream = stream, .numbers = {}, .tensor = Tensor::empty({count}, {.dtype = dtype_, .device = device})};
  if (found == copies_.end()) return copies_.emplace_back(std::move(copy));
  *found = std::move(copy);
  return *found;
}

/// On a GPU from pinned memory and behind the work of the current stream.
void DeviceCopies::refresh(Copy& copy, std::span<const std::byte> numbers) const {
  if (std::ranges::equal(copy.numbers, numbers)) return;
  check_may_copy(copy.tensor.device());
  const bool on_gpu = copy.tensor.device().type == DeviceType::cuda;
  const MemoryTagScope scope(MemoryTag::workspace);
  const Tensor here = on_gpu ? Tensor::empty(copy.tensor.shape(), {.dtype = dtype_, .pinned = true}) : copy.tensor;
  std::memcpy(Out(here).raw_data(), numbers.data(), numbers.size());
  if (on_gpu) copy.tensor.copy_from_async(here);
  copy.numbers.assign(numbers.begin(), numbers.end());
}

Tensor DeviceCopies::on(Device device, std::span<const std::byte> numbers) {
  Copy& copy = copy_on(device, numbers.size());
  refresh(copy, numbers);
  return copy.tensor;
}

void DeviceCopies::upload(std::span<const std::byte> numbers) {
  for (Copy& copy : copies_) {
    const Device device = copy.tensor.device();
    if (!(copy.stream == current_stream(device)))
      throw NotRepeatable(fmt::format(
          "{}: its numbers on {} are read on another stream than the current one; make that the current one", owner_,
          name_of(device)));
    refresh(copy_on(device, numbers.size()), numbers);
  }
}

bool DeviceCopies::has(Device device) const {
  return std::ranges::any_of(copies_, [&](const Copy& copy) { return copy.tensor.device() == device; });
}

}  // namespace tandem
