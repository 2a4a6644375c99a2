// Barriers that count arrivals and bytes, copies of tiles that arrive at them, and registers that warpgroups hand to
// each other: PTX under nvcc for sm_90, plain C++ in the simulator. (PTX ISA, "mbarrier", "cp.async.bulk.tensor",
// "setmaxnreg")
#pragma once

#include <cuda.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <source_location>

#ifndef __CUDACC__
#include "tandem/simulator/mbarrier.h"
#include "tandem/simulator/tensor_map.h"
#endif

// Device code of older GPUs compiles without these instructions; kernels that use them are not launched there.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define TANDEM_HAS_SM90_PTX
#endif

namespace tandem::device {

/// 8 bytes of shared memory. Phases end when so many threads have arrived and so many bytes as they announced.
class Mbarrier {
 public:
  /// One thread calls it; the others may use the barrier after publish_mbarriers() and __syncthreads().
  __device__ void init(unsigned arrivals,
                       [[maybe_unused]] std::source_location where = std::source_location::current()) {
#if defined(TANDEM_HAS_SM90_PTX)
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;\n" ::"r"(address()), "r"(arrivals) : "memory");
#elif !defined(__CUDACC__)
    simulator::init_mbarrier(&state_, arrivals, where);
#endif
  }

  __device__ void arrive([[maybe_unused]] std::source_location where = std::source_location::current()) {
#if defined(TANDEM_HAS_SM90_PTX)
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];\n" ::"r"(address()) : "memory");
#elif !defined(__CUDACC__)
    simulator::arrive_at_mbarrier(&state_, where);
#endif
  }

  /// The same, and announces the bytes of copies.
  __device__ void arrive_and_expect(unsigned bytes,
                                    [[maybe_unused]] std::source_location where = std::source_location::current()) {
#if defined(TANDEM_HAS_SM90_PTX)
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\n" ::"r"(address()), "r"(bytes) : "memory");
#elif !defined(__CUDACC__)
    simulator::arrive_and_expect(&state_, bytes, where);
#endif
  }

  /// Waits for the end of the phase of a parity: 0 for the first; 1 for the one before it, which counts as ended.
  __device__ void wait(unsigned parity, [[maybe_unused]] std::source_location where = std::source_location::current()) {
#if defined(TANDEM_HAS_SM90_PTX)
    unsigned ended = 0;
    while (ended == 0) {
      asm volatile(
          "{\n.reg .pred ended;\n"
          "mbarrier.try_wait.parity.shared::cta.b64 ended, [%1], %2;\n"
          "selp.u32 %0, 1, 0, ended;\n}\n"
          : "=r"(ended)
          : "r"(address()), "r"(parity)
          : "memory");
    }
#elif !defined(__CUDACC__)
    simulator::wait_at_mbarrier(&state_, parity, where);
#endif
  }

  /// Starts copying the tile of a tensor of four dimensions from these coordinates on, innermost first; outside of the
  /// tensor are zeros. Its bytes arrive here.
  __device__ void copy_tile(void* shared, const CUtensorMap* map, int first, int second, int third, int fourth,
                            [[maybe_unused]] std::source_location where = std::source_location::current()) {
#if defined(TANDEM_HAS_SM90_PTX)
    asm volatile(
        "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6}], "
        "[%2];\n" ::"r"(static_cast<unsigned>(__cvta_generic_to_shared(shared))),
        "l"(map), "r"(address()), "r"(first), "r"(second), "r"(third), "r"(fourth)
        : "memory");
#elif !defined(__CUDACC__)
    const int coordinates[] = {first, second, third, fourth};
    simulator::start_tile_copy(shared, map, &state_, coordinates, 4, where);
#endif
  }

 private:
#ifdef __CUDACC__
  __device__ unsigned address() { return static_cast<unsigned>(__cvta_generic_to_shared(&state_)); }
#endif

  std::uint64_t state_;
};

/// Lets copies of tiles see barriers that this thread has initialised.
__device__ inline void publish_mbarriers() {
#if defined(TANDEM_HAS_SM90_PTX)
  asm volatile("fence.mbarrier_init.release.cluster;\n" ::: "memory");
  asm volatile("fence.proxy.async;\n" ::: "memory");
#endif
}

/// Fetches a tensor map before it is used.
__device__ inline void prefetch_tensor_map([[maybe_unused]] const CUtensorMap* map) {
#if defined(TANDEM_HAS_SM90_PTX)
  asm volatile("prefetch.tensormap [%0];\n" ::"l"(map) : "memory");
#endif
}

/// Registers that each thread of this warpgroup has from now on; all four warps call it.
template <int kRegisters>
__device__ void take_registers() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;\n" ::"n"(kRegisters));
#endif
}
template <int kRegisters>
__device__ void give_registers() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;\n" ::"n"(kRegisters));
#endif
}

}  // namespace tandem::device
