// Storage: allocation and accounting.
#include "core/storage.h"

#include "core/allocator.h"

#include <cstring>

namespace tandem {

Storage::Storage(std::int64_t bytes, Device device, MemoryTag tag) : bytes_(bytes), device_(device), tag_(tag) {
  if (bytes_ > 0) data_ = allocator_for(device_).allocate(bytes_);
  if (bytes_ > 0 && device_.type == DeviceType::cpu && detail::poison_new_storages()) {
    std::memset(data_, 0xff, static_cast<std::size_t>(bytes_));
  }
  detail::count_memory(tag_, bytes_);
}

Storage::~Storage() {
  if (data_ != nullptr) allocator_for(device_).deallocate(data_, bytes_);
  detail::count_memory(tag_, -bytes_);
}

void Storage::set_tag(MemoryTag tag) {
  detail::count_memory(tag_, -bytes_);
  tag_ = tag;
  detail::count_memory(tag_, bytes_);
}

}  // namespace tandem
