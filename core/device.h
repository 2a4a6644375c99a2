// Where a tensor's memory lives and its kernels run.
#pragma once

#include <cstdint>
#include <string>

#include "tandem/config.h"

namespace tandem {

/// True where this build has the CUDA device. Whether the machine has one, too, is asked of core/device_query.h.
inline constexpr bool kHasCuda = TANDEM_HAS_CUDA != 0;

enum class DeviceType : std::uint8_t { cpu, cuda };

/// `Device{}` is the CPU; `Device{DeviceType::cuda, 1}` the second GPU.
/// Example:
///     const Device second_gpu{DeviceType::cuda, 1};
///     const std::string name = name_of(second_gpu);  // "cuda:1"
struct Device {
  DeviceType type = DeviceType::cpu;
  int index = 0;

  friend constexpr bool operator==(const Device&, const Device&) = default;
};

inline std::string name_of(Device device) {
  return device.type == DeviceType::cpu ? std::string("cpu") : "cuda:" + std::to_string(device.index);
}

}  // namespace tandem
