// Counters in device memory for launches whose later blocks wait for the earlier ones: device::Phases.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace tandem::cuda {

/// How many counters there are, and how many of 4 bytes lie between two of them: each has a line of the cache.
constexpr int kPhaseCounters = 3, kPhaseCounterStep = 32;

/// The counters for a launch that comes next on `stream`, a Stream's, of this thread's device. They are 0 when it
/// begins, and it must leave them 0. Launches of a stream share them, as one begins when the one before it has ended;
/// launches of two streams never do, nor what a stream records for a graph and what it is given besides. A launch that
/// fails half-way leaves them as they are: on a GPU no other one follows it, because the process has lost its context.
/// In the simulator later ones on that stream wait without end or, behind a fault of a last phase, compute nonsense.
std::uint32_t* phase_counters(cudaStream_t stream);

/// Called before a stream ends: frees its counters in its order.
void free_phase_counters(cudaStream_t stream) noexcept;

}  // namespace tandem::cuda
