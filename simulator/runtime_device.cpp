// The simulated CUDA runtime: devices and errors.
#include "tandem/simulator/capture.h"
#include "tandem/simulator/device_memory.h"
#include "tandem/simulator/include/cuda.h"
#include "tandem/simulator/runtime.h"
#include "tandem/simulator/settings.h"
#include "tandem/simulator/shared_memory.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstring>
#include <utility>

namespace tandem::simulator {

namespace {
thread_local int device_of_thread = 0;
thread_local bool thread_has_context = false;
thread_local cudaError_t last_error = cudaSuccess;

constexpr int kMajor = 9, kMinor = 0;

/// CUDA's words, and what it leaves out: which call it was.
const char* text_of_invalidation() {
  thread_local std::string text;
  text = "operation failed due to a previous error during capture";
  if (!reason_of_invalidation().empty()) text += fmt::format(" ({})", reason_of_invalidation());
  return text.c_str();
}
}  // namespace

int current_device() {
  // The runtime makes a context for the first call that needs one.
  if (!std::exchange(thread_has_context, true)) ++runtime_counts().default_contexts;
  return device_of_thread;
}
RuntimeCounts& runtime_counts() {
  static RuntimeCounts counts;
  return counts;
}
bool has_context() { return thread_has_context; }
bool device_exists(int device) { return device >= 0 && device < settings().devices; }

cudaError_t note(cudaError_t error) {
  if (error != cudaSuccess) last_error = error;
  return error;
}

}  // namespace tandem::simulator

using namespace tandem::simulator;

cudaError_t cudaGetDeviceCount(int* count) {
  *count = settings().devices;
  return note(*count == 0 ? cudaErrorNoDevice : cudaSuccess);
}

cudaError_t cudaSetDevice(int device) {
  if (!device_exists(device)) return note(cudaErrorInvalidDevice);
  device_of_thread = device;
  thread_has_context = true;
  return cudaSuccess;
}

cudaError_t cudaGetDevice(int* device) {
  *device = device_of_thread;
  return note(device_exists(device_of_thread) ? cudaSuccess : cudaErrorNoDevice);
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (!device_exists(device)) return note(cudaErrorInvalidDevice);
  *properties = {};
  std::snprintf(properties->name, sizeof properties->name, "Tandem simulated GPU %d", device);
  std::memcpy(properties->uuid.bytes, "tandem simulated", 16);
  properties->uuid.bytes[15] = static_cast<char>(device);
  properties->totalGlobalMem = settings().memory_bytes;
  properties->sharedMemPerBlock = kStaticSharedLimit;
  properties->sharedMemPerBlockOptin = kSharedLimit;
  properties->sharedMemPerMultiprocessor = kSharedLimit + 1024;
  properties->warpSize = 32;
  properties->maxThreadsPerBlock = 1024;
  const int block[] = {1024, 1024, 64}, grid[] = {0x7fffffff, 65535, 65535};
  std::memcpy(properties->maxThreadsDim, block, sizeof block);
  std::memcpy(properties->maxGridSize, grid, sizeof grid);
  properties->major = kMajor;
  properties->minor = kMinor;
  properties->multiProcessorCount = settings().multiprocessors;
  properties->maxThreadsPerMultiProcessor = 2048;
  properties->l2CacheSize = 50 << 20;
  properties->pciDeviceID = device;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  if (!device_exists(device)) return note(cudaErrorInvalidDevice);
  switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock:
      *value = 1024;
      return cudaSuccess;
    case cudaDevAttrMaxSharedMemoryPerBlock:
      *value = static_cast<int>(kStaticSharedLimit);
      return cudaSuccess;
    case cudaDevAttrMultiProcessorCount:
      *value = settings().multiprocessors;
      return cudaSuccess;
    case cudaDevAttrComputeCapabilityMajor:
      *value = kMajor;
      return cudaSuccess;
    case cudaDevAttrComputeCapabilityMinor:
      *value = kMinor;
      return cudaSuccess;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      *value = static_cast<int>(kSharedLimit);
      return cudaSuccess;
    case cudaDevAttrMemoryPoolsSupported:
    case cudaDevAttrIpcEventSupport:
      *value = 1;
      return cudaSuccess;
    case cudaDevAttrClockRate:
    case cudaDevAttrMemoryClockRate:
    case cudaDevAttrGlobalMemoryBusWidth:
      *value = 0;  // it has neither clocks nor a bus
      return cudaSuccess;
  }
  return note(cudaErrorInvalidValue);
}

cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  if (!device_exists(device) || !device_exists(peer)) return note(cudaErrorInvalidDevice);
  *can = device != peer && settings().ipc != Ipc::off ? 1 : 0;
  return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize(TandemWhere where) {
  const std::lock_guard lock(runtime_mutex());
  ++runtime_counts().stream_waits;
  if (const cudaError_t status = check_waiting_for_device(current_device(), "cudaDeviceSynchronize", site_id(where));
      status != cudaSuccess)
    return note(status);
  timeline().synchronize_all();
  return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) { return cudaDriverGetVersion(version); }

cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  if (!device_exists(current_device())) return note(cudaErrorNoDevice);
  const std::lock_guard lock(runtime_mutex());
  *free = free_device_bytes(current_device());
  *total = settings().memory_bytes;
  return cudaSuccess;
}

cudaError_t cudaGetLastError() {
  const cudaError_t error = last_error;
  last_error = cudaSuccess;
  return error;
}

cudaError_t cudaPeekAtLastError() { return last_error; }

const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "cudaSuccess";
    case cudaErrorInvalidValue:
      return "cudaErrorInvalidValue";
    case cudaErrorMemoryAllocation:
      return "cudaErrorMemoryAllocation";
    case cudaErrorInvalidConfiguration:
      return "cudaErrorInvalidConfiguration";
    case cudaErrorNoDevice:
      return "cudaErrorNoDevice";
    case cudaErrorInvalidDevice:
      return "cudaErrorInvalidDevice";
    case cudaErrorDeviceUninitialized:
      return "cudaErrorDeviceUninitialized";
    case cudaErrorMapBufferObjectFailed:
      return "cudaErrorMapBufferObjectFailed";
    case cudaErrorInvalidResourceHandle:
      return "cudaErrorInvalidResourceHandle";
    case cudaErrorNotReady:
      return "cudaErrorNotReady";
    case cudaErrorIllegalState:
      return "cudaErrorIllegalState";
    case cudaErrorNotSupported:
      return "cudaErrorNotSupported";
    case cudaErrorStreamCaptureUnsupported:
      return "cudaErrorStreamCaptureUnsupported";
    case cudaErrorStreamCaptureInvalidated:
      return "cudaErrorStreamCaptureInvalidated";
    case cudaErrorStreamCaptureMerge:
      return "cudaErrorStreamCaptureMerge";
    case cudaErrorStreamCaptureUnmatched:
      return "cudaErrorStreamCaptureUnmatched";
    case cudaErrorStreamCaptureUnjoined:
      return "cudaErrorStreamCaptureUnjoined";
    case cudaErrorStreamCaptureIsolation:
      return "cudaErrorStreamCaptureIsolation";
    case cudaErrorStreamCaptureImplicit:
      return "cudaErrorStreamCaptureImplicit";
    case cudaErrorCapturedEvent:
      return "cudaErrorCapturedEvent";
    case cudaErrorStreamCaptureWrongThread:
      return "cudaErrorStreamCaptureWrongThread";
    default:
      return "cudaErrorUnknown";
  }
}

const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "no error";
    case cudaErrorInvalidValue:
      return "invalid argument";
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorInvalidConfiguration:
      return "invalid configuration argument";
    case cudaErrorNoDevice:
      return "no simulated device (TANDEM_SIMULATOR_DEVICES is 0)";
    case cudaErrorInvalidDevice:
      return "invalid device ordinal";
    case cudaErrorDeviceUninitialized:
      return "invalid device context";
    case cudaErrorMapBufferObjectFailed:
      return "mapping of buffer object failed";
    case cudaErrorInvalidResourceHandle:
      return "invalid resource handle";
    case cudaErrorNotReady:
      return "device not ready";
    case cudaErrorIllegalState:
      return "the operation cannot be performed in the present state";
    case cudaErrorNotSupported:
      return "operation not supported";
    case cudaErrorStreamCaptureUnsupported:
      return "operation not permitted when stream is capturing";
    case cudaErrorStreamCaptureInvalidated:
      return text_of_invalidation();
    case cudaErrorStreamCaptureMerge:
      return "operation would result in a merge of separate capture sequences";
    case cudaErrorStreamCaptureUnmatched:
      return "capture was not ended in the same stream as it began";
    case cudaErrorStreamCaptureUnjoined:
      return "capturing stream has unjoined work";
    case cudaErrorStreamCaptureIsolation:
      return "dependency created on uncaptured work in another stream";
    case cudaErrorStreamCaptureImplicit:
      return "operation would make the legacy stream depend on a capturing blocking stream";
    case cudaErrorCapturedEvent:
      return "operation not permitted on an event last recorded in a capturing stream";
    case cudaErrorStreamCaptureWrongThread:
      return "attempt to terminate a thread-local capture sequence from another thread";
    default:
      return "unknown error";
  }
}

cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned, unsigned long long,
                                             cudaDriverEntryPointQueryResult* result) {
  *function = nullptr;
  if (std::strcmp(symbol, "cuTensorMapEncodeTiled") == 0) *function = reinterpret_cast<void*>(&cuTensorMapEncodeTiled);
  if (std::strcmp(symbol, "cuGetErrorString") == 0) *function = reinterpret_cast<void*>(&cuGetErrorString);
  if (result != nullptr)
    *result = *function != nullptr ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return cudaSuccess;
}
