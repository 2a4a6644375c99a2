// The devices that a test of both kinds runs on.
#pragma once

#include "tests/support/cuda_device.h"

#include <vector>

namespace tandem::test {

/// The CPU, and a GPU where there is one. For what must hold on both, whose test on the CPU is not to look as if
/// skipped.
inline std::vector<Device> cpu_and_gpu() {
  if (cuda_device_count() == 0) return {Device{}};
  return {Device{}, kGpu};
}

}  // namespace tandem::test
