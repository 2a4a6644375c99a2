// What the files of the simulated CUDA runtime share.
#pragma once

#include "tandem/simulator/fault_kind.h"
#include "tandem/simulator/include/cuda_runtime_api.h"
#include "tandem/simulator/timeline.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace tandem::simulator {
class SharedPage;
}

struct CUstream_st {
  tandem::simulator::StreamState* state;
};

struct CUevent_st {
  tandem::simulator::Clock clock;
  bool recorded = false;
  std::shared_ptr<tandem::simulator::Capture> capture;  // that its stream was part of when it was recorded last
  std::vector<std::size_t> captured_last;               // the stream's nodes then
  bool timed = true;
  std::shared_ptr<std::chrono::steady_clock::time_point> time;  // when the stream came to it
  bool is_interprocess = false;                                 // may be opened by other processes
  std::shared_ptr<tandem::simulator::SharedPage> shared;        // with those that have it; null where nobody has
  bool is_imported = false;                                     // of another process
};

namespace tandem::simulator {

/// The device of the calling thread.
int current_device();
/// True once the calling thread has set a device or made a call of the runtime that needs one. Calls of the driver need
/// that.
bool has_context();
bool device_exists(int device);
/// The state of a stream, the default one of the current device for null.
StreamState& state_of(cudaStream_t stream);

/// Calls of the runtime, counted for tests.
struct RuntimeCounts {
  std::atomic<std::int64_t> event_queries = 0;
  std::atomic<std::int64_t> event_waits = 0;       // cudaEventSynchronize()
  std::atomic<std::int64_t> stream_waits = 0;      // of the host for all that a stream or a device has to do
  std::atomic<std::int64_t> default_contexts = 0;  // of threads that had set no device before the first call
  std::atomic<std::int64_t> launches = 0;          // of kernels
  std::atomic<std::int64_t> copies_to_device = 0;  // from the host
  std::atomic<std::int64_t> bytes_to_device = 0;   // that these bring
  std::atomic<std::int64_t> bytes_to_host = 0;     // that copies take back
  std::atomic<std::int64_t> bytes_on_device = 0;   // that copies take from one place there to another
};
RuntimeCounts& runtime_counts();

/// Notes an error for cudaGetLastError() and gives it back.
cudaError_t note(cudaError_t error);

/// Throws the Fault of what a stream has come to.
[[noreturn]] void fail_work(FaultKind kind, const std::string& what);

/// True if the address lies in memory of cudaMallocHost.
bool is_pinned(const void* address);

}  // namespace tandem::simulator
