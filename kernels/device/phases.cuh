// A launch in phases: blocks of one phase wait until all blocks of the phases before it are done, which spares a launch
// for each. Blocks take turns in the order in which they begin, so that who waits, waits for blocks that have begun
// already and that wait for earlier ones alone: such a launch ends however few blocks a GPU holds at once.
//
//   const Phases phases(stream);                        // the host's, for launch()
//   const unsigned turn = phases.begin();               // of a block: 0, 1, 2, ...
//   if (turn < first_blocks) { ...; return phases.finish(); }
//   phases.await_last(first_blocks, last_blocks);       // each block of the last phase calls it, once
//
// What blocks of a phase have written, those of later phases read by plain loads.
#pragma once

#include "tandem/core/cuda/phase_counters.h"
#include "tandem/kernels/device/shared.h"

#include <cuda_runtime.h>

#include <cstdint>

namespace tandem::device {

/// Kernels take it by value. All threads of a block call these functions.
class Phases {
 public:
  /// For a launch that uses none of them.
  Phases() = default;
  /// For one launch, the next one on the stream.
  explicit Phases(cudaStream_t stream) : counters_(cuda::phase_counters(stream)) {}

  /// The turn of this block. It ends with a barrier.
  __device__ unsigned begin() const {
    TANDEM_SHARED(unsigned, turn);
    if (threadIdx.x == 0) turn = atomicAdd(begun(), 1u);
    __syncthreads();
    return turn;
  }

  /// This block, of a phase that is not the last, is done.
  __device__ void finish() const {
    __syncthreads();
    if (threadIdx.x != 0) return;
    __threadfence();
    atomicAdd(done(), 1u);
  }

  /// Waits for the `blocks` blocks of all phases before this one. It ends with a barrier.
  __device__ void await(unsigned blocks) const {
    if (threadIdx.x == 0) {
      wait_for(blocks);
      __threadfence();
    }
    __syncthreads();
  }

  /// The same in the last phase, which has `last_blocks` blocks. The last of them to leave the wait sets the counters
  /// back for another launch: nobody looks at them any more.
  __device__ void await_last(unsigned blocks, unsigned last_blocks) const {
    if (threadIdx.x == 0) {
      wait_for(blocks);
      if (atomicAdd(left(), 1u) + 1 == last_blocks) {
        atomicExch(begun(), 0u);
        atomicExch(done(), 0u);
        atomicExch(left(), 0u);
      }
      __threadfence();
    }
    __syncthreads();
  }

 private:
  __device__ std::uint32_t* begun() const { return counters_; }
  __device__ std::uint32_t* done() const { return counters_ + cuda::kPhaseCounterStep; }
  __device__ std::uint32_t* left() const { return counters_ + 2 * cuda::kPhaseCounterStep; }

  __device__ void wait_for(unsigned blocks) const {
    while (load_done() < blocks) __nanosleep(32);
  }

  /// A load of the device's memory: many blocks that wait are not to keep atomics of others from it.
  __device__ unsigned load_done() const {
#ifdef __CUDACC__
    unsigned value = 0;
    asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];\n" : "=r"(value) : "l"(done()) : "memory");
    return value;
#else
    return atomicAdd(done(), 0u);
#endif
  }

  std::uint32_t* counters_ = nullptr;
};

}  // namespace tandem::device
