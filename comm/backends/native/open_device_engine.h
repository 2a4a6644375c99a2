// From ranks with a GPU each to collectives through their memory, or why not.
#pragma once

#include "tandem/comm/backends/backend.h"
#include "tandem/comm/backends/native/device_engine.h"

#include <memory>
#include <string>

namespace tandem::comm {

/// Both are empty where all ranks compute on the CPU.
struct OpenedDevices {
  std::unique_ptr<DeviceEngine> engine;  ///< null where there is an obstacle, on all ranks
  std::string obstacle;                  ///< the same on all ranks
};

/// For the ranks of `backend`, which share a host and each compute on `device`; `peers` outlives the engine.
/// Collective.
OpenedDevices open_device_engine(Backend& backend, Device device, const PeerProcesses& peers,
                                 DeviceSegments segments = {});

}  // namespace tandem::comm
