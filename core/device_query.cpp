// Device query: the CPU, and the way to the CUDA runtime where it is in the build.
#include "tandem/core/device_query.h"

#include "tandem/core/error.h"
#include "tandem/core/has_cuda.h"

#include <fstream>
#include <thread>

#if defined(__linux__)
#include <sched.h>
#include <unistd.h>
#endif

namespace tandem {

namespace {

std::string cpu_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    const auto colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "CPU";
}

int usable_cores() {
#if defined(__linux__)
  cpu_set_t mask;
  if (sched_getaffinity(0, sizeof mask, &mask) == 0) return CPU_COUNT(&mask);
#endif
  return static_cast<int>(std::thread::hardware_concurrency());
}

std::int64_t physical_memory() {
#if defined(__linux__)
  return static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGE_SIZE);
#else
  return 0;
#endif
}

/// Asked once: neither drivers nor GPUs come while a process runs.
const detail::CudaPresence& cuda_presence() {
  static const detail::CudaPresence presence = [] {
    if constexpr (kHasCuda) return detail::find_cuda();
    return detail::CudaPresence{0, "this build has no CUDA (TANDEM_CUDA=OFF)"};
  }();
  return presence;
}

}  // namespace

std::vector<DeviceDescription> list_devices() {
  std::vector<DeviceDescription> devices{{Device{}, cpu_name(), physical_memory(), usable_cores(), "", "", ""}};
  if constexpr (kHasCuda) {
    for (DeviceDescription& device : detail::list_cuda_devices(cuda_device_count()))
      devices.push_back(std::move(device));
  }
  return devices;
}

std::string device_names() {
  std::string names = "cpu";
  for (const DeviceDescription& device : list_devices()) {
    if (device.device.type != DeviceType::cpu) names += fmt::format(", {} ({})", name_of(device.device), device.name);
  }
  return names;
}

std::string cuda_unavailable_reason() { return cuda_presence().problem; }

int cuda_device_count() { return cuda_presence().devices; }

NominalLimits nominal_limits(Device device) {
  if constexpr (kHasCuda)
    if (device.type == DeviceType::cuda && device.index >= 0 && device.index < cuda_device_count())
      return detail::nominal_cuda_limits(device.index);
  return {};
}

std::string cuda_versions() {
  if constexpr (kHasCuda) {
    if (cuda_device_count() > 0) return detail::describe_cuda_versions();
  }
  return cuda_unavailable_reason();
}

bool cuda_is_simulated() { return TANDEM_CUDA_IS_SIMULATED != 0; }

void check_device(Device device) {
  if (device.type == DeviceType::cpu) {
    require(device.index == 0, "device cpu:{}: there is one CPU, cpu; use that", device.index);
    return;
  }
  const detail::CudaPresence& presence = cuda_presence();
  if (device.index >= 0 && device.index < presence.devices) [[likely]]
    return;
  require(presence.devices > 0, "device {}: {}; use the device cpu", name_of(device), presence.problem);
  fail("device {}: there is no such device; use one of {}", name_of(device), device_names());
}

}  // namespace tandem
