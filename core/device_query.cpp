// Device query: the CPU, and the way to the CUDA runtime where it is in the build.
#include "core/device_query.h"

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

}  // namespace

std::vector<DeviceDescription> list_devices() {
  std::vector<DeviceDescription> devices{{Device{}, cpu_name(), physical_memory(), usable_cores(), ""}};
#if TANDEM_HAS_CUDA
  for (DeviceDescription& device : detail::list_cuda_devices()) devices.push_back(std::move(device));
#endif
  return devices;
}

std::string cuda_unavailable_reason() {
#if TANDEM_HAS_CUDA
  return detail::cuda_runtime_problem();
#else
  return "this build has no CUDA (TANDEM_CUDA=OFF)";
#endif
}

}  // namespace tandem
