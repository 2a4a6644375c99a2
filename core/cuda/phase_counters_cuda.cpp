// One set of counters for each stream, and for each stream of a recording: made at the first use.
#include "tandem/core/cuda/phase_counters.h"

#include "tandem/core/cuda/check.h"
#include "tandem/core/cuda/recording.h"

#include <map>
#include <mutex>

namespace tandem::cuda {

namespace {

/// By stream. Never destroyed, as streams in static objects may outlive every other static.
struct CountersOfStreams {
  std::mutex mutex;
  std::map<cudaStream_t, void*> memory;
};
CountersOfStreams& counters_of_streams() {
  static CountersOfStreams& counters = *new CountersOfStreams;
  return counters;
}

/// In the order of the stream.
void* make_counters(cudaStream_t stream) {
  constexpr std::size_t kBytes = kPhaseCounters * kPhaseCounterStep * sizeof(std::uint32_t);
  void* memory = nullptr;
  TANDEM_CHECK_CUDA(cudaMallocAsync(&memory, kBytes, stream));
  TANDEM_CHECK_CUDA(cudaMemsetAsync(memory, 0, kBytes, stream));
  return memory;
}

}  // namespace

std::uint32_t* phase_counters(cudaStream_t stream) {
  if (void** const recorded = counters_in_recording(stream)) {
    if (*recorded == nullptr) *recorded = make_counters(stream);
    return static_cast<std::uint32_t*>(*recorded);
  }
  CountersOfStreams& all = counters_of_streams();
  const std::lock_guard lock(all.mutex);
  void*& memory = all.memory[stream];
  if (memory == nullptr) memory = make_counters(stream);
  return static_cast<std::uint32_t*>(memory);
}

void free_phase_counters(cudaStream_t stream) noexcept {
  CountersOfStreams& all = counters_of_streams();
  const std::lock_guard lock(all.mutex);
  const auto found = all.memory.find(stream);
  if (found == all.memory.end()) return;
  if (found->second != nullptr && cudaFreeAsync(found->second, stream) != cudaSuccess) cudaGetLastError();
  all.memory.erase(found);
}

}  // namespace tandem::cuda
