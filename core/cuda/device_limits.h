// What a GPU has of what kernels divide among blocks.
#pragma once

#include "tandem/core/device.h"

namespace tandem::cuda {

struct DeviceLimits {
  int multiprocessors;
  int shared_bytes;  // of shared memory that one block may have, where it asks for more than 48 KiB
  int capability;    // 90 for 9.0
};

/// Asked once for each device. Throws Error unless it is a CUDA device that is there.
DeviceLimits device_limits(Device device);

}  // namespace tandem::cuda
