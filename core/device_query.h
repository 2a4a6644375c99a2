// Which devices this machine offers to this build.
// Example:
//     const Device device = cuda_device_count() > 0 ? Device{DeviceType::cuda} : Device{};
//     const std::string reason = cuda_unavailable_reason();  // why there is none, or empty
//     const DeviceDescription cpu = list_devices()[0];       // cpu.name: "Intel(R) Xeon(R) ..."
#pragma once

#include "tandem/core/device.h"

#include <cstdint>
#include <string>
#include <vector>

namespace tandem {

/// What there is to know of a device before it is used.
struct DeviceDescription {
  Device device{};                ///< which one
  std::string name;               ///< "Intel(R) Xeon(R) ...", "NVIDIA H200"
  std::int64_t memory_bytes = 0;  ///< total; 0 if unknown
  int units = 0;                  ///< logical CPUs that this process may run on, or streaming multiprocessors
  std::string capability;         ///< "sm_90"; empty for the CPU, as are the next two
  std::string uuid;               ///< "GPU-3f2a...": one name in all processes, whatever index they see it under
  std::string pci_address;        ///< "0000:3b:00", which the parts of a shared GPU (MIG) have in common
};

/// The CPU first, then every CUDA device. Without a driver or a GPU the list holds the CPU alone.
std::vector<DeviceDescription> list_devices();

/// The same in words, for messages: "cpu, cuda:0 (NVIDIA H200)".
std::string device_names();

/// Why there is no CUDA device to use: "this build has no CUDA (TANDEM_CUDA=OFF)", no driver, one too old, no GPU; or
/// empty if there is one.
std::string cuda_unavailable_reason();

/// Number of CUDA devices that can be used; 0 where there is a reason for that.
int cuda_device_count();

/// The CUDA versions that the driver knows and that this build uses: "driver 13.0, runtime 12.8". For builds and
/// machines without a CUDA device the reason for that.
std::string cuda_versions();

/// True where the CUDA devices of this build are the simulator's (TANDEM_CUDA=SIMULATED).
bool cuda_is_simulated();

/// What a GPU's data sheet would say, from its clocks and widths; 0: not known, as of the CPU and of simulated GPUs.
struct NominalLimits {
  double flops_per_second = 0.0;  ///< f32, without tensor cores
  double bytes_per_second = 0.0;  ///< of its memory
};
/// Those of `device`.
NominalLimits nominal_limits(Device device);

/// Throws Error unless this build and machine have `device`; the text says why not and which devices there are.
void check_device(Device device);

namespace detail {
struct CudaPresence {
  int devices = 0;
  std::string problem;  // why there is none
};
/// The CUDA side, in device_query_cuda.cpp; all are absent from builds without CUDA.
CudaPresence find_cuda();
std::vector<DeviceDescription> list_cuda_devices(int count);
std::string describe_cuda_versions();
NominalLimits nominal_cuda_limits(int index);
}  // namespace detail

}  // namespace tandem
