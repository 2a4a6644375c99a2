// Planted faults: asynchronous copies used too early, never waited for, or without the barrier that others need.
#include "tandem/core/cuda/launch.h"
#include "tandem/kernels/device/atoms.h"
#include "tandem/kernels/device/shared.h"
#include "tests/simulator/device_buffer.h"
#include "tests/simulator/planted_fault.h"

namespace tandem::test {
namespace {

using simulator::FaultKind;
constexpr int kThreads = 32;

__global__ void no_wait(const float* in, float* out) {
  TANDEM_SHARED(float, tile, [kThreads]);
  const int t = static_cast<int>(threadIdx.x);
  device::cp_async<4>(&tile[t], &in[t]);
  device::cp_async_commit();
  __syncthreads();
  out[t] = tile[t];  // fault: wait missing
}

__global__ void wait_for_too_little(const float* in, float* out) {
  TANDEM_SHARED(float, tile, [2][kThreads]);
  const int t = static_cast<int>(threadIdx.x);
  for (int stage = 0; stage < 2; ++stage) {
    device::cp_async<4>(&tile[stage][t], &in[stage * kThreads + t]);
    device::cp_async_commit();
  }
  device::cp_async_wait<1>();
  __syncthreads();
  out[t] = tile[0][t] + tile[1][t];  // fault: the newest group is still under way
  device::cp_async_wait<0>();
}

__global__ void no_commit(const float* in, float* out) {
  TANDEM_SHARED(float, tile, [kThreads]);
  const int t = static_cast<int>(threadIdx.x);
  device::cp_async<4>(&tile[t], &in[t]);
  device::cp_async_wait<0>();
  __syncthreads();
  out[t] = tile[t];  // fault: commit missing
}

__global__ void no_barrier(const float* in, float* out) {
  TANDEM_SHARED(float, tile, [kThreads]);
  const int t = static_cast<int>(threadIdx.x);
  device::cp_async<4>(&tile[t], &in[t]);
  device::cp_async_commit();
  device::cp_async_wait<0>();
  out[t] = tile[kThreads - 1 - t];  // fault: barrier missing after the wait
}

__global__ void overwrites_what_is_read(const float* in, float* out) {
  TANDEM_SHARED(float, tile, [kThreads]);
  const int t = static_cast<int>(threadIdx.x);
  tile[t] = in[t];
  __syncthreads();
  const float value = tile[kThreads - 1 - t];
  device::cp_async<4>(&tile[t], &in[t]);  // fault: copy into what others still read
  device::cp_async_commit();
  device::cp_async_wait<0>();
  out[t] = value;
}

__global__ void overwrites_destination(const float* in, float* out) {
  TANDEM_SHARED(float, tile, [kThreads]);
  const int t = static_cast<int>(threadIdx.x);
  device::cp_async<4>(&tile[t], &in[t]);
  device::cp_async_commit();
  tile[t] = 1.0f;  // fault: destination written before the wait
  device::cp_async_wait<0>();
  out[t] = tile[t];
}

__global__ void overwrites_between_barriers(const float* in, float* out) {
  TANDEM_SHARED(float, tile, [kThreads]);
  const int t = static_cast<int>(threadIdx.x);
  device::cp_async<4>(&tile[t], &in[t]);
  device::cp_async_commit();
  __syncthreads();
  if (t == 0) tile[kThreads - 1] = 1.0f;  // fault: another thread writes what is being copied
  __syncthreads();
  device::cp_async_wait<0>();
  out[t] = tile[t];
}

/// A barrier after the start of a copy does not tell that it has read its source.
__global__ void overwrites_source(const float* in, float* out) {
  TANDEM_SHARED(float, tile, [kThreads]);
  const int t = static_cast<int>(threadIdx.x);
  out[t] = in[t];
  __syncthreads();
  device::cp_async<4>(&tile[t], &out[t]);
  device::cp_async_commit();
  __syncthreads();
  out[(t + 1) % kThreads] = 1.0f;  // fault: another thread overwrites what is copied from
  device::cp_async_wait<0>();
  __syncthreads();
  out[t] = tile[t];
}

__global__ void leaves_early(const float* in) {
  TANDEM_SHARED(float, tile, [kThreads]);
  const int t = static_cast<int>(threadIdx.x);
  device::cp_async<4>(&tile[t], &in[t]);  // fault: thread leaves before its copy is done
  device::cp_async_commit();
}

__global__ void misaligned_copy(const float* in, float* out) {
  TANDEM_SHARED(float4, tile, [kThreads]);
  const int t = static_cast<int>(threadIdx.x);
  device::cp_async<16>(&tile[t], in + 1);  // fault: 16 bytes from an odd address
  device::cp_async_commit();
  device::cp_async_wait<0>();
  out[t] = tile[t].x;
}

PlantedFault fault(const char* name, FaultKind kind, void (*kernel)(const float*, float*), bool checked = true,
                   bool may_read_too_early = false) {
  return {name,
          kind,
          [=] {
            const DeviceBuffer<float> in(zeros<float>(2 * kThreads)), out(kThreads);
            launch(kernel, {1, kThreads}, nullptr, in.data(), out.data());
          },
          checked,
          __FILE__,
          may_read_too_early};
}

const PlantFault faults[] = {
    PlantFault(fault("wait missing", FaultKind::async_copy, no_wait)),
    PlantFault(fault("the newest group is still under way", FaultKind::async_copy, wait_for_too_little)),
    PlantFault(fault("commit missing", FaultKind::async_copy, no_commit)),
    PlantFault(fault("barrier missing after the wait", FaultKind::race, no_barrier, true, true)),
    PlantFault(fault("copy into what others still read", FaultKind::race, overwrites_what_is_read)),
    PlantFault(fault("destination written before the wait", FaultKind::async_copy, overwrites_destination)),
    PlantFault(fault("another thread writes what is being copied", FaultKind::async_copy, overwrites_between_barriers)),
    PlantFault(fault("another thread overwrites what is copied from", FaultKind::race, overwrites_source)),
    PlantFault({"thread leaves before its copy is done", FaultKind::async_copy,
                [] {
                  const DeviceBuffer<float> in(std::vector<float>(kThreads, 0.0f));
                  launch(leaves_early, {1, kThreads}, nullptr, in.data());
                },
                false, __FILE__}),
    PlantFault(fault("16 bytes from an odd address", FaultKind::misaligned, misaligned_copy, false)),
};

}  // namespace
}  // namespace tandem::test
