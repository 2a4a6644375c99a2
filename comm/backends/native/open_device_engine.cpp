// Each step is done by all ranks or given up by all.
#include "tandem/comm/backends/native/open_device_engine.h"

#include "tandem/comm/backends/keep_for_ever.h"
#include "tandem/comm/backends/native/device_trial.h"
#include "tandem/comm/backends/native/obstacle.h"
#include "tandem/core/device_query.h"
#include "tandem/core/error.h"
#include "tandem/core/has_cuda.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace tandem::comm {

namespace {

std::string uuid_of(Device device) {
  for (const DeviceDescription& one : list_devices())
    if (one.device == device) return one.uuid;
  return "";
}

/// `uuids`: of the ranks' GPUs, "" on the CPU.
std::string obstacle_of_places(const std::vector<std::string>& uuids, const PeerProcesses& peers, int rank) {
  for (std::size_t other = 0; other < uuids.size(); ++other)
    if (uuids[other].empty()) return fmt::format("rank {} computes on the CPU", other);
  for (int other = 0; other < static_cast<int>(uuids.size()); ++other)
    if (other != rank && peers.is_here(other))
      return "ranks are threads of one process, and CUDA opens no memory of its own process";
  return "";
}

}  // namespace

OpenedDevices open_device_engine(Backend& backend, Device device, const PeerProcesses& peers, DeviceSegments segments) {
  const Place place = backend.place();
  const bool is_gpu = device.type == DeviceType::cuda;
  std::string own_uuid;
  if (std::string obstacle = obstacle_to(backend, [&] { own_uuid = is_gpu ? uuid_of(device) + " " : ""; });
      !obstacle.empty())
    return {nullptr, obstacle};
  const std::vector<std::string> uuids = backend.all_gather_bytes(own_uuid);
  if (std::ranges::all_of(uuids, &std::string::empty)) return {};
  if (std::string obstacle = obstacle_of_places(uuids, peers, place.rank); !obstacle.empty())
    return {nullptr, obstacle};
  if constexpr (kHasCuda) {
    // A reduce_scatter has a part of each slot for each rank.
    constexpr std::int64_t kSlotUnit = 256;
    segments.bytes = (std::max(segments.bytes, kSlotUnit * place.size) + kSlotUnit - 1) / kSlotUnit * kSlotUnit;
    std::unique_ptr<DeviceWindow> window;
    std::string handle;
    std::string obstacle = obstacle_to(backend, [&] {
      for (const std::string& uuid : uuids) {
        const std::string reason = obstacle_to_peer(device, uuid.substr(0, uuid.size() - 1));
        require(reason.empty(), "{}", reason);
      }
      window = make_device_window(device, place.rank, place.size, segments.bytes);
      handle = window->handle();
    });
    if (!obstacle.empty()) return {nullptr, obstacle};
    const std::vector<std::string> handles = backend.all_gather_bytes(handle);
    obstacle = obstacle_to(backend, [&] { window->open(handles); });
    if (obstacle.empty()) {
      DeviceTrial trial(*window, place, segments.bytes);
      obstacle = trial.run(backend);
      if (!trial.is_idle_on_all(backend)) {  // what is at work there would be waited for
        trial.keep_for_ever();
        detail::keep_for_ever(std::shared_ptr<DeviceWindow>(std::move(window)));
        return {nullptr, obstacle};
      }
    }
    if (obstacle.empty()) {
      const SharedByRanks shared = share_memory(backend, DeviceEngine::area_bytes(), {.name = "tandem GPUs"});
      if (shared.memory)
        return {
            std::make_unique<DeviceEngine>(std::move(window), shared.memory, place.rank, place.size, peers, segments),
            ""};
      obstacle = shared.obstacle;
    }
    // Nobody frees memory that another rank has open.
    const std::string fault = obstacle_to(backend, [&] { window->close(); });
    return {nullptr, fault.empty() ? obstacle : fault};
  }
  return {};
}

}  // namespace tandem::comm
