// device_query: lists what this build can compute on, and what --device auto takes of it.
#include "core/device_query.h"
#include "core/parse_device.h"

#include <fmt/core.h>

int main() {
  for (const tandem::DeviceDescription& device : tandem::list_devices()) {
    fmt::print("{:<8} {:<44} {:>4} {:<5} {:>7.1f} GiB  {}\n", name_of(device.device), device.name, device.units,
               device.device.type == tandem::DeviceType::cpu ? "cores" : "SMs",
               static_cast<double>(device.memory_bytes) / (1 << 30), device.capability);
  }
  if (const std::string reason = tandem::cuda_unavailable_reason(); !reason.empty()) fmt::print("no CUDA device: {}\n", reason);
  fmt::print("--device auto: {}\n", name_of(tandem::parse_device("auto")));
}
