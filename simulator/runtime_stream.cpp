// The simulated CUDA runtime: streams, events, launches.
#include "tandem/simulator/engine.h"
#include "tandem/simulator/run.h"
#include "tandem/simulator/runtime.h"
#include "tandem/simulator/shared_memory.h"

#include <map>

namespace tandem::simulator {

namespace {

/// Dynamic shared memory that kernels may have beyond 48 KiB.
std::map<const void*, int>& shared_limits() {
  static std::map<const void*, int> limits;
  return limits;
}

/// The answer to a query. One that says yes tells the host as much as a wait; one that says no moves deferred work on.
cudaError_t ready(const Clock& clock) {
  if (timeline().is_done(clock)) {
    timeline().synchronize(clock);
    return cudaSuccess;
  }
  timeline().advance();
  return cudaErrorNotReady;
}

}  // namespace

void set_capturing(cudaStream_t stream, bool captures) {
  const std::lock_guard lock(runtime_mutex());
  state_of(stream).captures = captures;
}

StreamState& state_of(cudaStream_t stream) {
  return stream == nullptr ? timeline().default_stream(current_device()) : *stream->state;
}

void enqueue_launch(const void* kernel, dim3 grid, dim3 block, std::size_t shared_bytes, cudaStream_t stream,
                    std::source_location where, void (*body)(const void*), const void* arguments,
                    std::size_t argument_bytes, void* (*copy)(const void*), void (*destroy)(void*)) {
  const std::lock_guard lock(runtime_mutex());
  const auto limit = shared_limits().find(kernel);
  const std::size_t allowed =
      limit == shared_limits().end() ? kStaticSharedLimit : static_cast<std::size_t>(limit->second);
  if (!device_exists(current_device())) {
    note(cudaErrorNoDevice);
    return;
  }
  if (shared_bytes > allowed) {
    note(cudaErrorInvalidValue);
    return;
  }
  ++runtime_counts().launches;
  const std::shared_ptr<void> owned(copy(arguments), destroy);
  timeline().enqueue(state_of(stream), function_name(kernel), site_id(where), [=] {
    engine().run({kernel, grid, block, shared_bytes, body, owned.get(), argument_bytes, where});
  });
}

}  // namespace tandem::simulator

using namespace tandem::simulator;

cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute attribute, int value) {
  const std::lock_guard lock(runtime_mutex());
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaSuccess;
  if (value < 0 || static_cast<std::size_t>(value) > kSharedLimit) return note(cudaErrorInvalidValue);
  shared_limits()[kernel] = value;
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  if (!device_exists(current_device())) return note(cudaErrorNoDevice);
  const std::lock_guard lock(runtime_mutex());
  *stream = new CUstream_st{&timeline().make_stream(current_device(), flags != cudaStreamNonBlocking)};
  return cudaSuccess;
}

cudaError_t cudaStreamCreate(cudaStream_t* stream) { return cudaStreamCreateWithFlags(stream, cudaStreamDefault); }

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int) {
  return cudaStreamCreateWithFlags(stream, flags);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  if (stream == nullptr) return note(cudaErrorInvalidResourceHandle);
  delete stream;  // its state stays: CUDA does not wait for the work, which goes on
  return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  const std::lock_guard lock(runtime_mutex());
  *status = state_of(stream).captures ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  const std::lock_guard lock(runtime_mutex());
  ++runtime_counts().stream_waits;
  if (state_of(stream).captures) return note(cudaErrorStreamCaptureUnsupported);
  timeline().synchronize(state_of(stream));
  return cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  const std::lock_guard lock(runtime_mutex());
  return ready(state_of(stream).clock);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  if (event == nullptr) return note(cudaErrorInvalidResourceHandle);
  const std::lock_guard lock(runtime_mutex());
  if (event->recorded) timeline().wait(state_of(stream), event->clock);
  return cudaSuccess;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  const std::lock_guard lock(runtime_mutex());
  timeline().enqueue(state_of(stream), "cudaLaunchHostFunc", 0, [=] { function(data); });
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  *event = new CUevent_st;
  (*event)->timed = (flags & cudaEventDisableTiming) == 0;
  return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, cudaEventDefault); }

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  if (event == nullptr) return note(cudaErrorInvalidResourceHandle);
  delete event;
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  if (event == nullptr) return note(cudaErrorInvalidResourceHandle);
  const std::lock_guard lock(runtime_mutex());
  event->time = std::make_shared<std::chrono::steady_clock::time_point>();
  StreamState& state = state_of(stream);
  timeline().enqueue(state, "cudaEventRecord", 0, [time = event->time] { *time = std::chrono::steady_clock::now(); });
  event->clock = timeline().record(state);
  event->recorded = true;
  event->captured = state.captures;
  return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (event == nullptr) return note(cudaErrorInvalidResourceHandle);
  const std::lock_guard lock(runtime_mutex());
  ++runtime_counts().event_waits;
  if (event->captured) return note(cudaErrorCapturedEvent);
  if (event->recorded) timeline().synchronize(event->clock);
  return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  if (event == nullptr) return note(cudaErrorInvalidResourceHandle);
  const std::lock_guard lock(runtime_mutex());
  ++runtime_counts().event_queries;
  if (event->captured) return note(cudaErrorCapturedEvent);
  return event->recorded ? ready(event->clock) : cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  if (start == nullptr || end == nullptr || !start->recorded || !end->recorded || !start->timed || !end->timed)
    return note(cudaErrorInvalidResourceHandle);
  const std::lock_guard lock(runtime_mutex());
  if (!timeline().is_done(start->clock) || !timeline().is_done(end->clock)) return cudaErrorNotReady;
  *milliseconds = std::chrono::duration<float, std::milli>(*end->time - *start->time).count();
  return cudaSuccess;
}
