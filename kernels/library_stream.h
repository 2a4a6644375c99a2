// Where the calls of a library go.
#pragma once

#include "tandem/core/cuda/current_stream.h"
#include "tandem/core/stream.h"

namespace tandem::kernels {

/// This thread's current stream of `device`, which becomes the device that its CUDA calls are for.
inline Stream library_stream(Device device) {
  if (device.type == DeviceType::cuda) tandem::cuda::current_stream(device);
  return current_stream(device);
}

}  // namespace tandem::kernels
