// --resident-data: whether the images are kept on the GPU.
#pragma once

#include "run_parts.h"

namespace tandem::apps {

struct ResidentData {
  bool is_resident = false;
  std::string text;  ///< the line that says where the images are; "" where they are on the CPU, as is the computing
};

/// `free_bytes`: what nobody has taken of `device`, not looked at for the CPU. `auto` takes a quarter of it at most.
/// Throws Error where --resident-data on cannot be done.
ResidentData resident_data(const Settings& settings, const Data& images, Device device, std::int64_t free_bytes);

/// Of a GPU; 0 of the CPU.
std::int64_t free_memory_of(Device device);

}  // namespace tandem::apps
