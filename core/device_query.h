// Which devices this machine offers to this build.
#pragma once

#include "core/device.h"

#include <cstdint>
#include <string>
#include <vector>

namespace tandem {

struct DeviceDescription {
  Device device{};
  std::string name;               // "Intel(R) Xeon(R) ...", "NVIDIA H200"
  std::int64_t memory_bytes = 0;  // total; 0 if unknown
  int units = 0;                  // CPU cores usable by this process, or streaming multiprocessors
  std::string capability;         // "sm_90" for CUDA, empty for the CPU
};

/// The CPU first, then every CUDA device. Without a driver or a GPU the list holds the CPU alone.
std::vector<DeviceDescription> list_devices();

/// Why there is no CUDA device to use: "this build has no CUDA (TANDEM_CUDA=OFF)", the driver's own words, or empty
/// if there is one.
std::string cuda_unavailable_reason();

namespace detail {
/// The CUDA side, in device_query_cuda.cpp; both are absent from builds without CUDA.
std::vector<DeviceDescription> list_cuda_devices();
std::string cuda_runtime_problem();
}  // namespace detail

}  // namespace tandem
