// What the kernels of some work move in global memory, counted in the simulator: exact, and the same on every machine.
#pragma once

#include "tandem/core/device.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace tandem {

struct KernelCounts {
  std::string kernel;  // with its template's arguments, without the project's namespaces
  std::uint64_t launches = 0;
  std::uint64_t bytes_read = 0, bytes_written = 0;  // of sectors that requests of warps touch; caches do not count
};

/// Why nothing can be counted there, or "".
std::string counting_obstacle(Device device);

/// One entry for each kernel that `work` launches, most bytes first. Throws Error where there is an obstacle.
std::vector<KernelCounts> count_kernels(const std::function<void()>& work);

}  // namespace tandem
