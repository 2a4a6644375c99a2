// Barriers for some of a block's threads: PTX under nvcc, plain C++ in the simulator. (PTX ISA, "bar.sync")
#pragma once

#include <cuda_runtime.h>

#include <source_location>

#ifndef __CUDACC__
#include "tandem/simulator/named_barrier.h"
#endif

namespace tandem::device {

/// Waits for kThreads threads, a multiple of 32, at barrier `id`, 1 to 15.
template <int kThreads>
__device__ void sync_named(unsigned id, [[maybe_unused]] std::source_location where = std::source_location::current()) {
#ifdef __CUDACC__
  asm volatile("bar.sync %0, %1;\n" ::"r"(id), "n"(kThreads) : "memory");
#else
  simulator::sync_named(id, kThreads, where);
#endif
}

}  // namespace tandem::device
