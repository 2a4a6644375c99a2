// Which allocator serves which device.
#include "tandem/core/allocator.h"

#include "tandem/core/cpu_allocator.h"
#include "tandem/core/cuda/runtime.h"
#include "tandem/core/device_query.h"
#include "tandem/core/has_cuda.h"

namespace tandem {

CpuAllocator& cpu_allocator() {
  // Never destroyed: storages in static objects may outlive every other static.
  static CpuAllocator& allocator = *[] {
    auto* const made = new CpuAllocator;
    made->hold_during_fork();
    return made;
  }();
  return allocator;
}

namespace {

/// Made before there are threads: a process that is made by fork() while another thread makes it would wait for that
/// for ever.
[[maybe_unused]] const bool is_made = (cpu_allocator(), true);

}  // namespace

Allocator& allocator_for(Device device) {
  check_device(device);
  if constexpr (kHasCuda) {
    if (device.type == DeviceType::cuda) return cuda::device_allocator(device.index);
  }
  return cpu_allocator();
}

Allocator& pinned_allocator() {
  if constexpr (kHasCuda) {
    if (cuda_device_count() > 0) return cuda::pinned_allocator();
  }
  return cpu_allocator();
}

}  // namespace tandem
