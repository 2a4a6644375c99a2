// Device query through the CUDA runtime.
#include "core/device_query.h"

#include <cuda_runtime_api.h>

namespace tandem::detail {

namespace {

/// Number of CUDA devices; the runtime's word for why there is none goes to `problem`.
int count_devices(std::string& problem) {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess) {
    problem = cudaGetErrorString(status);
    return 0;
  }
  if (count == 0) problem = "the driver reports no CUDA device";
  return count;
}

}  // namespace

std::vector<DeviceDescription> list_cuda_devices() {
  std::string problem;
  const int count = count_devices(problem);
  std::vector<DeviceDescription> devices;
  for (int index = 0; index < count; ++index) {
    cudaDeviceProp properties{};
    if (cudaGetDeviceProperties(&properties, index) != cudaSuccess) continue;
    devices.push_back({Device{DeviceType::cuda, index}, properties.name,
                       static_cast<std::int64_t>(properties.totalGlobalMem), properties.multiProcessorCount,
                       "sm_" + std::to_string(properties.major) + std::to_string(properties.minor)});
  }
  return devices;
}

std::string cuda_runtime_problem() {
  std::string problem;
  count_devices(problem);
  return problem;
}

}  // namespace tandem::detail
