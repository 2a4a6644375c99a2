// Where a tensor's memory lives and its kernels run.
#pragma once

#include <cstdint>
#include <string>

namespace tandem {

/// Kinds of devices that a build can have.
enum class DeviceType : std::uint8_t { cpu, cuda };

/// `Device{}` is the CPU; `Device{DeviceType::cuda, 1}` the second GPU.
/// Example:
///     const Device second_gpu{DeviceType::cuda, 1};
///     const std::string name = name_of(second_gpu);  // "cuda:1"
struct Device {
  /// The CPU, or a GPU of CUDA.
  DeviceType type = DeviceType::cpu;
  /// Of the GPUs that this process sees, from 0; of the CPU 0.
  int index = 0;

  friend constexpr bool operator==(const Device&, const Device&) = default;
};

/// "cpu", or "cuda:0" for the first GPU.
inline std::string name_of(Device device) {
  return device.type == DeviceType::cpu ? std::string("cpu") : "cuda:" + std::to_string(device.index);
}

}  // namespace tandem
