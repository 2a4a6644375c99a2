// Planted faults: more than a device has. nvcc and the driver refuse these by themselves.
#include "tandem/core/cuda/launch.h"
#include "tandem/kernels/device/shared.h"
#include "tests/simulator/device_buffer.h"
#include "tests/simulator/planted_fault.h"

namespace tandem::test {
namespace {

using simulator::FaultKind;
constexpr int kThreads = 64;

__global__ void big_static_shared(float* out) {
  TANDEM_SHARED(float, tile, [13 * 1024]);  // fault: static shared memory too large
  tile[threadIdx.x] = 1.0f;
  out[threadIdx.x] = tile[threadIdx.x];
}

__global__ void nothing() {}

const PlantFault faults[] = {
    PlantFault({"static shared memory too large", FaultKind::limit,
                [] {
                  const DeviceBuffer<float> out(kThreads);
                  launch(big_static_shared, {1, kThreads}, nullptr, out.data());
                },
                false, __FILE__}),
    PlantFault({"too many threads", FaultKind::limit,
                [] {
                  launch(nothing, {1, dim3(32, 33)}, nullptr);  // fault: too many threads
                },
                false, __FILE__}),
};

}  // namespace
}  // namespace tandem::test
