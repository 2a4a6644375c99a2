// Planted faults: barriers that not all threads reach, and warp operations whose masks are wrong.
#include "tandem/core/cuda/launch.h"
#include "tandem/kernels/device/atoms.h"
#include "tandem/kernels/device/shared.h"
#include "tests/simulator/device_buffer.h"
#include "tests/simulator/planted_fault.h"

namespace tandem::test {
namespace {

using simulator::FaultKind;
constexpr unsigned kAll = 0xffffffffu;

__global__ void barrier_in_branch() {
  if (threadIdx.x < 32) __syncthreads();  // fault: barrier in a branch
  __syncthreads();
}

__global__ void two_barriers() {
  if (threadIdx.x < 32) {
    __syncthreads();
  } else {
    __syncthreads();  // fault: two barriers for one
  }
}

__global__ void warp_against_block() {
  if (threadIdx.x == 0) {
    __syncthreads();
  } else {
    __syncwarp();  // fault: lane 0 waits elsewhere
  }
}

__global__ void not_in_mask(int* out) {
  out[threadIdx.x] = __shfl_sync(0x0000ffffu, 1, 0);  // fault: caller not in its mask
}

__global__ void exited_source(int* out) {
  if (threadIdx.x == 3) return;
  out[threadIdx.x] = __shfl_sync(kAll, 1, 3);  // fault: shuffle from a lane that has left
}

__global__ void product_without_a_lane(float* out) {
  if (threadIdx.x == 3) return;
  const std::uint32_t a[4] = {}, b[2] = {};
  float d[4] = {};
  device::mma_m16n8k16_f16(d, a, b);  // fault: a lane has left before the product
  out[threadIdx.x] = d[0];
}

__global__ void syncwarp_left_out() {
  if (threadIdx.x != 0)
    __syncwarp(threadIdx.x == 9 ? 0x000000f0u : 0xfffffdfeu);  // fault: caller of __syncwarp not in its mask
}

__global__ void flag_nobody_sets(int* flag) {
  if (threadIdx.x >= 60) return;
  if (threadIdx.x < 32) {
    while (atomicAdd(flag, 0) == 0) {  // fault: flag that nobody sets
    }
  }
  __syncthreads();
}

__global__ void volatile_flag_nobody_sets(const volatile int* flag) {
  while (*flag == 0) {  // fault: volatile flag that nobody sets
  }
}

__global__ void volatile_flag(volatile int* flag) {
  if (threadIdx.x == 0) {
    *flag = 1;
  } else if (threadIdx.x >= 32) {
    while (*flag == 0) {  // fault: flag that is no atomic one
    }
  }
}

__global__ void masks_differ(int* out) {
  const unsigned mask = threadIdx.x < 16 ? kAll : 0xffff0000u;
  out[threadIdx.x] = __any_sync(mask, 1);  // fault: lanes come with different masks
  __syncwarp();
}

__global__ void source_outside_mask(int* out) {
  const int t = static_cast<int>(threadIdx.x);
  if (t < 16) out[t] = __shfl_sync(0x0000ffffu, t, 20);  // fault: shuffle from outside of the mask
}

__global__ void operations_differ(int* out) {
  if (threadIdx.x < 16) {
    out[threadIdx.x] = static_cast<int>(__ballot_sync(kAll, 1));
  } else {
    out[threadIdx.x] = __shfl_sync(kAll, 1, 0);  // fault: lanes come for different operations
  }
}

__global__ void odd_width(int* out) {
  out[threadIdx.x] = __shfl_down_sync(kAll, 1, 1, 12);  // fault: width is no power of two
}

__global__ void short_warp(int* out) {
  out[threadIdx.x] = __shfl_down_sync(kAll, static_cast<int>(threadIdx.x), 4);  // fault: the block has no such lane
}

PlantedFault fault(const char* name, FaultKind kind, void (*kernel)(), unsigned threads) {
  return {name, kind, [=] { launch(kernel, {1, threads}, nullptr); }, false, __FILE__};
}

PlantedFault fault(const char* name, FaultKind kind, void (*kernel)(int*), unsigned threads) {
  return {name, kind,
          [=] {
            const DeviceBuffer<int> out(threads);
            launch(kernel, {1, threads}, nullptr, out.data());
          },
          false, __FILE__};
}

const PlantFault faults[] = {
    PlantFault(fault("barrier in a branch", FaultKind::barrier, barrier_in_branch, 64)),
    PlantFault(fault("two barriers for one", FaultKind::barrier, two_barriers, 64)),
    PlantFault(fault("lane 0 waits elsewhere", FaultKind::barrier, warp_against_block, 32)),
    PlantFault(fault("caller not in its mask", FaultKind::mask, not_in_mask, 32)),
    PlantFault(fault("caller of __syncwarp not in its mask", FaultKind::mask, syncwarp_left_out, 32)),
    PlantFault(fault("shuffle from a lane that has left", FaultKind::mask, exited_source, 32)),
    PlantFault({"a lane has left before the product", FaultKind::mask,
                [] {
                  const DeviceBuffer<float> out(32);
                  launch(product_without_a_lane, {1, 32}, nullptr, out.data());
                },
                false, __FILE__}),
    PlantFault({"flag that nobody sets", FaultKind::deadlock,
                [] {
                  const DeviceBuffer<int> flag(zeros<int>(1));
                  launch(flag_nobody_sets, {1, 64}, nullptr, flag.data());
                },
                false, __FILE__}),
    PlantFault({"volatile flag that nobody sets", FaultKind::deadlock,
                [] {
                  const DeviceBuffer<int> flag(zeros<int>(1));
                  launch(volatile_flag_nobody_sets, {1, 64}, nullptr, flag.data());
                },
                true, __FILE__}),
    PlantFault({"flag that is no atomic one", FaultKind::race,
                [] {
                  const DeviceBuffer<int> flag(zeros<int>(1));
                  launch(volatile_flag, {1, 64}, nullptr, flag.data());
                },
                true, __FILE__}),
    PlantFault(fault("lanes come with different masks", FaultKind::mask, masks_differ, 32)),
    PlantFault(fault("shuffle from outside of the mask", FaultKind::mask, source_outside_mask, 32)),
    PlantFault(fault("lanes come for different operations", FaultKind::mask, operations_differ, 32)),
    PlantFault(fault("width is no power of two", FaultKind::mask, odd_width, 32)),
    PlantFault(fault("the block has no such lane", FaultKind::mask, short_warp, 24)),
};

}  // namespace
}  // namespace tandem::test
