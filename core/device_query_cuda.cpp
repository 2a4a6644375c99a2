// Device query through the CUDA runtime.
#include "tandem/core/device_query.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

namespace tandem::detail {

namespace {

/// "13.0" of 13000.
std::string version_text(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

/// As nvidia-smi writes it: "GPU-3f2a0c1e-...".
std::string uuid_text(const cudaUUID_t& uuid) {
  std::string text = "GPU";
  for (std::size_t i = 0; i < sizeof uuid.bytes; ++i) {
    if (i == 0 || i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", static_cast<unsigned char>(uuid.bytes[i]));
  }
  return text;
}

/// Why cudaGetDeviceCount failed. The runtime says "driver version is insufficient" also where there is no driver.
std::string describe_failure(cudaError_t status) {
  if (status == cudaErrorNoDevice) return "the driver shows no CUDA device (CUDA_VISIBLE_DEVICES may hide it)";
  if (status != cudaErrorInsufficientDriver) return cudaGetErrorString(status);
  int driver = 0, runtime = 0;
  if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0) return "no NVIDIA driver is installed";
  cudaRuntimeGetVersion(&runtime);
  return fmt::format("the NVIDIA driver knows CUDA {} only, this build needs {}: update the driver",
                     version_text(driver), version_text(runtime));
}

/// 0 where the device does not tell.
double attribute_of(cudaDeviceAttr attribute, int index) {
  int value = 0;
  if (cudaDeviceGetAttribute(&value, attribute, index) == cudaSuccess) return static_cast<double>(value);
  cudaGetLastError();  // or else the next launch would be blamed
  return 0.0;
}

/// Units for f32 of a multiprocessor, 0 for one that is not known. Source: CUDA C++ Programming Guide, "Compute
/// Capabilities", arithmetic instructions per clock cycle.
double f32_units(int major, int minor) {
  if (major == 7 || (major == 8 && minor == 0)) return 64.0;
  if ((major >= 8 && major <= 10) || major == 12) return 128.0;
  return 0.0;
}

}  // namespace

NominalLimits nominal_cuda_limits(int index) {
  const auto major = static_cast<int>(attribute_of(cudaDevAttrComputeCapabilityMajor, index));
  const auto minor = static_cast<int>(attribute_of(cudaDevAttrComputeCapabilityMinor, index));
  const double clock_khz = attribute_of(cudaDevAttrClockRate, index);
  const double memory_khz = attribute_of(cudaDevAttrMemoryClockRate, index);
  const double bus_bits = attribute_of(cudaDevAttrGlobalMemoryBusWidth, index);
  // A unit multiplies and adds in one clock; memory moves two words in one of its clocks.
  return {2.0 * f32_units(major, minor) * attribute_of(cudaDevAttrMultiProcessorCount, index) * clock_khz * 1e3,
          2.0 * memory_khz * 1e3 * bus_bits / 8.0};
}

CudaPresence find_cuda() {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaSuccess && count > 0) return {count, ""};
  cudaGetLastError();  // or else the next launch would be blamed
  return {0, describe_failure(status == cudaSuccess ? cudaErrorNoDevice : status)};
}

std::string describe_cuda_versions() {
  int driver = 0, runtime = 0;
  cudaDriverGetVersion(&driver);
  cudaRuntimeGetVersion(&runtime);
  return fmt::format("driver {}, runtime {}", version_text(driver), version_text(runtime));
}

std::vector<DeviceDescription> list_cuda_devices(int count) {
  std::vector<DeviceDescription> devices;
  for (int index = 0; index < count; ++index) {
    cudaDeviceProp properties{};
    if (cudaGetDeviceProperties(&properties, index) != cudaSuccess) continue;
    devices.push_back(
        {Device{DeviceType::cuda, index}, properties.name, static_cast<std::int64_t>(properties.totalGlobalMem),
         properties.multiProcessorCount, "sm_" + std::to_string(properties.major) + std::to_string(properties.minor),
         uuid_text(properties.uuid),
         fmt::format("{:04x}:{:02x}:{:02x}", properties.pciDomainID, properties.pciBusID, properties.pciDeviceID)});
  }
  return devices;
}

}  // namespace tandem::detail
