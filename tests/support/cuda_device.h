// Tests that need a CUDA device: skipped, visibly, where there is none.
#pragma once

#include "tandem/core/device_query.h"
#include "tests/support/skip.h"

#include <string>

namespace tandem::test {

inline constexpr Device kGpu{DeviceType::cuda, 0};

/// True where there are as many CUDA devices; else the test case is skipped. Use: `if (!has_gpu()) return;`
inline bool has_gpu(int devices = 1) {
  if (cuda_device_count() >= devices) return true;
  const std::string reason = cuda_unavailable_reason();
  skip_test(reason.empty() ? "needs " + std::to_string(devices) + " CUDA devices" : reason);
  return false;
}

}  // namespace tandem::test
