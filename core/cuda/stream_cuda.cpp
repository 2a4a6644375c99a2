// Streams and events of the CUDA runtime.
#include "tandem/core/cuda/check.h"
#include "tandem/core/cuda/current_stream.h"
#include "tandem/core/cuda/phase_counters.h"
#include "tandem/core/cuda/runtime.h"
#include "tandem/core/stream.h"

namespace tandem::cuda {

void use_device(int device) { TANDEM_CHECK_CUDA(cudaSetDevice(device)); }

std::shared_ptr<void> make_stream(int device) {
  use_device(device);
  cudaStream_t stream = nullptr;
  TANDEM_CHECK_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  // What is still enqueued is carried out all the same.
  return {stream, [](void* queue) {
            free_phase_counters(static_cast<cudaStream_t>(queue));
            cudaStreamDestroy(static_cast<cudaStream_t>(queue));
          }};
}

void synchronize_stream(void* stream) { TANDEM_CHECK_CUDA(cudaStreamSynchronize(static_cast<cudaStream_t>(stream))); }

void synchronize_device(int device) {
  use_device(device);
  TANDEM_CHECK_CUDA(cudaDeviceSynchronize());
}

std::shared_ptr<void> make_event(int device, bool timed) {
  use_device(device);
  cudaEvent_t event = nullptr;
  TANDEM_CHECK_CUDA(cudaEventCreateWithFlags(&event, timed ? cudaEventDefault : cudaEventDisableTiming));
  return {event, [](void* mark) { cudaEventDestroy(static_cast<cudaEvent_t>(mark)); }};
}

void record_event(void* event, void* stream) {
  TANDEM_CHECK_CUDA(cudaEventRecord(static_cast<cudaEvent_t>(event), static_cast<cudaStream_t>(stream)));
}

void wait_for_event(void* stream, void* event) {
  TANDEM_CHECK_CUDA(cudaStreamWaitEvent(static_cast<cudaStream_t>(stream), static_cast<cudaEvent_t>(event), 0));
}

void synchronize_event(void* event) { TANDEM_CHECK_CUDA(cudaEventSynchronize(static_cast<cudaEvent_t>(event))); }

bool is_event_done(void* event) {
  const cudaError_t status = cudaEventQuery(static_cast<cudaEvent_t>(event));
  if (status == cudaErrorNotReady) {
    cudaGetLastError();  // no error: the next launch must not be blamed
    return false;
  }
  throw_if_failed(status, "cudaEventQuery", std::source_location::current());
  return true;
}

double elapsed_ms(void* from, void* to) {
  float milliseconds = 0.0f;
  TANDEM_CHECK_CUDA(cudaEventElapsedTime(&milliseconds, static_cast<cudaEvent_t>(from), static_cast<cudaEvent_t>(to)));
  return static_cast<double>(milliseconds);
}

cudaStream_t current_stream(Device device) {
  require(device.type == DeviceType::cuda, "a CUDA kernel was asked to work on {}", name_of(device));
  const Stream stream = tandem::current_stream(device);
  use_device(device.index);
  return static_cast<cudaStream_t>(stream.native());  // a scope or the shared stream keeps it alive
}

}  // namespace tandem::cuda
