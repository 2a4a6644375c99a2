// --resident-data: whether the images are kept on the GPU.
#pragma once

#include "run_parts.h"

#include "tandem/comm/process_group.h"

#include <cstdint>
#include <string>

namespace tandem::apps {

/// What nobody has taken of a GPU's memory.
struct FreeMemory {
  std::int64_t bytes = 0;
  std::string where;  ///< "cuda:0", and whose it is where the run has several ranks
};

/// That of the rank which has the least, as each tells its own, so that all decide alike. Collective.
FreeMemory least_free_memory(comm::ProcessGroup& group, Device device, std::int64_t bytes);

struct ResidentData {
  bool is_resident = false;
  std::string text;  ///< the line that says where the images are; "" where they are on the CPU, as is the computing
};

/// `free`: not looked at for the CPU. `auto` takes a quarter of it at most. Throws Error where --resident-data on
/// cannot be done.
ResidentData resident_data(const Settings& settings, const Data& images, Device device, const FreeMemory& free);

/// Of a GPU, in bytes; 0 of the CPU.
std::int64_t free_memory_of(Device device);

}  // namespace tandem::apps
