// What the files of the simulated CUDA runtime share.
#pragma once

#include "simulator/include/cuda_runtime_api.h"
#include "simulator/timeline.h"

#include <chrono>
#include <memory>

struct CUstream_st {
  tandem::simulator::StreamState* state;
};

struct CUevent_st {
  tandem::simulator::Clock clock;
  bool recorded = false;
  bool timed = true;
  std::shared_ptr<std::chrono::steady_clock::time_point> time;  // when the stream came to it
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

/// Notes an error for cudaGetLastError() and gives it back.
cudaError_t note(cudaError_t error);

/// True if the address lies in memory of cudaMallocHost.
bool is_pinned(const void* address);

/// Enqueues a fill or copy, with checks; see runtime_copy.cpp.
void check_copy_read(const void* start, std::size_t bytes, bool to_host);
void check_copy_write(void* start, std::size_t bytes);

}  // namespace tandem::simulator
