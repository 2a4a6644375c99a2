// Groups whose GPUs share memory.
#pragma once

#include "tandem/comm/backends/native/device_segments.h"
#include "tests/comm/mpi/mpi_test.h"
#include "tests/support/cuda_device.h"

namespace tandem::test {

/// An error where the GPUs of the ranks cannot.
inline std::unique_ptr<comm::ProcessGroup> make_device_group(const comm::DeviceSegments& segments = {}) {
  return make_native_group(
      {.name = "devices", .device = kGpu, .device_copies = comm::DeviceCopies::on, .device_segments = segments});
}

}  // namespace tandem::test
