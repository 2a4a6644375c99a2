// The simulated CUDA runtime: streams, events, launches.
#include "tandem/simulator/capture.h"
#include "tandem/simulator/engine.h"
#include "tandem/simulator/ipc.h"
#include "tandem/simulator/run.h"
#include "tandem/simulator/runtime.h"
#include "tandem/simulator/settings.h"
#include "tandem/simulator/shared_memory.h"

#include <fmt/format.h>

#include <chrono>
#include <map>
#include <thread>
#include <utility>

namespace tandem::simulator {

namespace {

/// Dynamic shared memory that kernels may have beyond 48 KiB.
std::map<const void*, int>& shared_limits() {
  static std::map<const void*, int> limits;
  return limits;
}

/// Whether another process's event has passed what it was recorded for the `recorded`th time.
bool has_passed(const SharedPage& event, int recorded) {
  if (settings().ipc == Ipc::unordered) return true;
  return settings().ipc != Ipc::stuck && event.number(kPassed).load() - recorded >= 0;
}
bool has_passed(const SharedPage& event) { return has_passed(event, event.number(kRecorded).load()); }

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

StreamState& state_of(cudaStream_t stream) {
  return stream == nullptr ? timeline().default_stream(current_device()) : *stream->state;
}

void enqueue_launch(const void* kernel, dim3 grid, dim3 block, std::size_t shared_bytes, cudaStream_t stream,
                    std::source_location where, const LaunchArguments& arguments) {
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
  StreamState& state = state_of(stream);
  GraphNode node{.name = function_name(kernel), .grid = grid, .block = block, .shared_bytes = shared_bytes};
  if (const cudaError_t status = check_stream(state, node.name.c_str(), site_id(where)); status != cudaSuccess) {
    note(status);
    return;
  }
  if (state.capture != nullptr) {
    node.arguments.resize(arguments.plain_bytes);
    arguments.write(arguments.data, node.arguments.data());
  } else {
    ++runtime_counts().launches;
  }
  const std::shared_ptr<void> owned(arguments.copy(arguments.data), arguments.destroy);
  submit(state, std::move(node), site_id(where), [=, call = arguments.call, bytes = arguments.bytes] {
    engine().run({kernel, grid, block, shared_bytes, call, owned.get(), bytes, where});
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
  const std::lock_guard lock(runtime_mutex());
  if (const std::shared_ptr<Capture> capture = stream->state->capture; capture != nullptr) {
    invalidate(*capture, cudaErrorStreamCaptureUnsupported, "cudaStreamDestroy of a stream that is captured");
    std::shared_ptr<GraphWork> dropped;
    if (capture->streams.front() == stream->state) end_capture(capture, dropped);  // as nobody can end it any more
  }
  delete stream;  // its state stays: CUDA does not wait for the work, which goes on
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream, TandemWhere where) {
  const std::lock_guard lock(runtime_mutex());
  ++runtime_counts().stream_waits;
  StreamState& state = state_of(stream);
  if (const cudaError_t status = check_waiting_for_stream(state, "cudaStreamSynchronize", site_id(where));
      status != cudaSuccess)
    return note(status);
  timeline().synchronize(state);
  return cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t stream, TandemWhere where) {
  const std::lock_guard lock(runtime_mutex());
  StreamState& state = state_of(stream);
  if (const cudaError_t status = check_waiting_for_stream(state, "cudaStreamQuery", site_id(where));
      status != cudaSuccess)
    return note(status);
  return ready(state.clock);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned, TandemWhere where) {
  if (event == nullptr) return note(cudaErrorInvalidResourceHandle);
  const std::lock_guard lock(runtime_mutex());
  StreamState& state = state_of(stream);
  const SiteId site = site_id(where);
  if (const cudaError_t status = check_stream(state, "cudaStreamWaitEvent", site); status != cudaSuccess)
    return note(status);
  if (event->is_imported) {
    timeline().enqueue(
        state, "cudaStreamWaitEvent", site, [] {},
        [page = event->shared, recorded = event->shared->number(kRecorded).load()] {
          return has_passed(*page, recorded);
        });
    return cudaSuccess;
  }
  if (event->capture != nullptr) return note(wait_for_captured(state, *event, site));
  if (!event->recorded) return cudaSuccess;
  if (state.capture != nullptr) {
    return note(invalidate(
        *state.capture, cudaErrorStreamCaptureIsolation,
        fmt::format("cudaStreamWaitEvent at {}, for an event that was recorded outside of it", site_of(site).text())));
  }
  timeline().wait(state, event->clock);
  return cudaSuccess;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data, TandemWhere where) {
  const std::lock_guard lock(runtime_mutex());
  StreamState& state = state_of(stream);
  if (const cudaError_t status = check_stream(state, "cudaLaunchHostFunc", site_id(where)); status != cudaSuccess)
    return note(status);
  submit(state,
         {.type = cudaGraphNodeTypeHost,
          .name = "cudaLaunchHostFunc",
          .arguments = argument_bytes_of({reinterpret_cast<std::uintptr_t>(function), number_of(data)})},
         site_id(where), [=] { function(data); });
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  const bool is_interprocess = (flags & cudaEventInterprocess) != 0, timed = (flags & cudaEventDisableTiming) == 0;
  if (is_interprocess && timed) return note(cudaErrorInvalidValue);
  *event = new CUevent_st;
  (*event)->timed = timed;
  (*event)->is_interprocess = is_interprocess;
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
  if (event->is_imported) return note(cudaErrorNotSupported);  // CUDA would
  StreamState& state = state_of(stream);
  if (const cudaError_t status = check_stream(state, "cudaEventRecord", 0); status != cudaSuccess) return note(status);
  event->capture = state.capture;
  event->captured_last = state.captured_last;
  if (state.capture != nullptr) return cudaSuccess;
  event->time = std::make_shared<std::chrono::steady_clock::time_point>();
  const int times = event->shared != nullptr ? event->shared->number(kRecorded).load() + 1 : 0;
  if (event->shared != nullptr) event->shared->number(kRecorded).store(times);
  timeline().enqueue(state, "cudaEventRecord", 0, [time = event->time, page = event->shared, times] {
    *time = std::chrono::steady_clock::now();
    if (page != nullptr) page->number(kPassed).store(times);
  });
  event->clock = timeline().record(state);
  event->recorded = true;
  if (event->shared != nullptr) pass_soon(event->clock);
  return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event, TandemWhere where) {
  if (event == nullptr) return note(cudaErrorInvalidResourceHandle);
  const std::lock_guard lock(runtime_mutex());
  ++runtime_counts().event_waits;
  if (event->is_imported) {
    while (!has_passed(*event->shared)) std::this_thread::sleep_for(std::chrono::microseconds(20));
    return cudaSuccess;
  }
  if (const cudaError_t status = check_waiting_for_event(*event, "cudaEventSynchronize", site_id(where));
      status != cudaSuccess)
    return note(status);
  if (event->recorded) timeline().synchronize(event->clock);
  return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event, TandemWhere where) {
  if (event == nullptr) return note(cudaErrorInvalidResourceHandle);
  const std::lock_guard lock(runtime_mutex());
  ++runtime_counts().event_queries;
  if (event->is_imported) return has_passed(*event->shared) ? cudaSuccess : cudaErrorNotReady;
  if (const cudaError_t status = check_waiting_for_event(*event, "cudaEventQuery", site_id(where));
      status != cudaSuccess)
    return note(status);
  return event->recorded ? ready(event->clock) : cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  if (start == nullptr || end == nullptr || !start->recorded || !end->recorded || !start->timed || !end->timed)
    return note(cudaErrorInvalidResourceHandle);
  const std::lock_guard lock(runtime_mutex());
  if (start->capture != nullptr || end->capture != nullptr) return note(cudaErrorCapturedEvent);
  if (!timeline().is_done(start->clock) || !timeline().is_done(end->clock)) return cudaErrorNotReady;
  *milliseconds = std::chrono::duration<float, std::milli>(*end->time - *start->time).count();
  return cudaSuccess;
}
