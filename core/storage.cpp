// Storage: allocation and accounting.
#include "tandem/core/storage.h"

#include "tandem/core/allocator.h"
#include "tandem/core/cuda/runtime.h"
#include "tandem/core/error.h"
#include "tandem/core/has_cuda.h"
#include "tandem/core/timeline.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace tandem {

namespace {

Allocator& allocator_of(Device device, bool pinned) { return pinned ? pinned_allocator() : allocator_for(device); }

void poison(Device device, void* data, std::int64_t bytes) {
  if constexpr (kHasCuda) {
    if (device.type == DeviceType::cuda) return cuda::set_bytes(device, data, 0xff, bytes);
  }
  std::memset(data, 0xff, static_cast<std::size_t>(bytes));
}

}  // namespace

Storage::Storage(std::int64_t bytes, Device device, MemoryTag tag, bool pinned)
    : bytes_(bytes), device_(device), tag_(tag), pinned_(pinned) {
  require(!pinned || device.type == DeviceType::cpu, "pinned memory is host memory: ask for it on the CPU, not on {}",
          name_of(device));
  Allocator& allocator = allocator_of(device, pinned);  // also without bytes: the device must be there
  if (device.type == DeviceType::cuda) streams_.push_back(current_stream(device));
  if (bytes_ > 0) {
    data_ = allocator.allocate(bytes_);
    if (detail::poison_new_storages()) poison(device_, data_, bytes_);
  }
  detail::count_memory(device_, tag_, bytes_);
  if (timeline_is_recorded()) [[unlikely]]
    detail::note_storage(this, device_, tag_, bytes_);
}

Storage::Storage(void* data, std::int64_t bytes, MemoryTag tag, std::shared_ptr<void> owner)
    : data_(data), bytes_(bytes), tag_(tag), pinned_(false), owner_(std::move(owner)) {
  require(owner_ != nullptr, "Storage: memory of {} bytes without an owner", bytes);
  detail::count_memory(device_, tag_, bytes_);
  if (timeline_is_recorded()) [[unlikely]]
    detail::note_storage(this, device_, tag_, bytes_);
}

Storage::~Storage() {
  if (data_ != nullptr && owner_ == nullptr) allocator_of(device_, pinned_).deallocate(data_, bytes_, streams_);
  detail::count_memory(device_, tag_, -bytes_);
  if (timeline_is_recorded()) [[unlikely]]
    detail::forget_storage(this);
}

void Storage::set_tag(MemoryTag tag) {
  detail::count_memory(device_, tag_, -bytes_);
  tag_ = tag;
  detail::count_memory(device_, tag_, bytes_);
}

void Storage::record_stream(const Stream& stream) {
  if (stream.native() == nullptr) return;
  if (std::find(streams_.begin(), streams_.end(), stream) == streams_.end()) streams_.push_back(stream);
}

}  // namespace tandem
