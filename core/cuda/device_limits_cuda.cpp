#include "tandem/core/cuda/device_limits.h"

#include "tandem/core/cuda/check.h"
#include "tandem/core/device_query.h"
#include "tandem/core/error.h"

#include <map>
#include <mutex>

namespace tandem::cuda {

DeviceLimits device_limits(Device device) {
  static std::mutex mutex;
  static std::map<int, DeviceLimits> known;
  const std::lock_guard lock(mutex);
  const auto found = known.find(device.index);
  if (found != known.end() && device.type == DeviceType::cuda) return found->second;
  check_device(device);
  require(device.type == DeviceType::cuda, "device_limits: the device is a CPU; ask for a CUDA device");
  DeviceLimits limits{};
  TANDEM_CHECK_CUDA(cudaDeviceGetAttribute(&limits.multiprocessors, cudaDevAttrMultiProcessorCount, device.index));
  TANDEM_CHECK_CUDA(
      cudaDeviceGetAttribute(&limits.shared_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device.index));
  int major = 0, minor = 0;
  TANDEM_CHECK_CUDA(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device.index));
  TANDEM_CHECK_CUDA(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device.index));
  limits.capability = major * 10 + minor;
  return known[device.index] = limits;
}

}  // namespace tandem::cuda
