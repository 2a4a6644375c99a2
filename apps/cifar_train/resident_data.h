// --resident-data: whether the images are kept on the GPU.
#pragma once

#include "run_parts.h"

namespace tandem::apps {

struct ResidentData {
  bool is_resident = false;
  std::string text;  ///< the line that says where the images are; "" where they are on the CPU, as is the computing
};

/// `memory_bytes`: all that `device` has, 0: not known. `auto` takes a quarter of it at most. Throws Error where
/// --resident-data on cannot be done.
ResidentData resident_data(const Settings& settings, const Data& images, Device device, std::int64_t memory_bytes);

/// Of a GPU, as list_devices() has it; 0 of the CPU.
std::int64_t memory_of(Device device);

}  // namespace tandem::apps
