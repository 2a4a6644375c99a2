// What a capture refuses, with CUDA's error codes: the call gives one, later calls and the end of the capture another,
// and then all is as before.
#include "tandem/simulator/runtime.h"
#include "tests/simulator/captured_graph.h"
#include "tests/simulator/device_buffer.h"
#include "tests/simulator/runtime_kernels.h"
#include "tests/support/catch.h"

#include <functional>
#include <string>
#include <thread>
#include <vector>

using namespace tandem;
using namespace tandem::test;

namespace {

constexpr int kCount = 64;
constexpr std::size_t kBytes = kCount * sizeof(int);

cudaStreamCaptureStatus status_of(cudaStream_t stream) {
  cudaStreamCaptureStatus status{};
  TANDEM_CHECK_CUDA(cudaStreamIsCapturing(stream, &status));
  return status;
}

cudaError_t end(cudaStream_t stream) {
  cudaGraph_t graph = nullptr;
  const cudaError_t error = cudaStreamEndCapture(stream, &graph);
  CHECK((graph == nullptr) == (error != cudaSuccess));
  if (graph != nullptr) TANDEM_CHECK_CUDA(cudaGraphDestroy(graph));
  cudaGetLastError();
  return error;
}

void check_usable(cudaStream_t stream) {
  const DeviceBuffer<int> data(kCount);
  CHECK(status_of(stream) == cudaStreamCaptureStatusNone);
  launch_fill(data.data(), kCount, 3, stream);
  TANDEM_CHECK_CUDA(cudaStreamSynchronize(stream));
  CHECK(data.download() == std::vector<int>(kCount, 3));
}

}  // namespace

TEST_CASE("what a capture refuses ends it") {
  const TwoStreams streams;
  const DeviceBuffer<int> data(kCount);
  std::vector<int> pageable(kCount);
  const MarkedEvent outside, never, inside;
  outside.record(streams.second);
  void* taken = nullptr;
  struct Refused {
    const char* call;
    cudaError_t error;
    std::function<cudaError_t()> make;
  };
  const std::vector<Refused> calls = {
      {"cudaStreamSynchronize", cudaErrorStreamCaptureUnsupported,
       [&] { return cudaStreamSynchronize(streams.first); }},
      {"cudaStreamSynchronize", cudaErrorStreamCaptureUnsupported,
       [&] { return cudaStreamSynchronize(streams.second); }},
      {"cudaStreamQuery", cudaErrorStreamCaptureUnsupported, [&] { return cudaStreamQuery(streams.first); }},
      {"cudaDeviceSynchronize", cudaErrorStreamCaptureUnsupported, [] { return cudaDeviceSynchronize(); }},
      {"cudaEventQuery", cudaErrorStreamCaptureUnsupported, [&] { return cudaEventQuery(outside.get()); }},
      {"cudaEventSynchronize", cudaErrorStreamCaptureUnsupported, [&] { return cudaEventSynchronize(outside.get()); }},
      {"cudaMemcpy", cudaErrorStreamCaptureUnsupported,
       [&] { return cudaMemcpy(data.data(), pageable.data(), kBytes, cudaMemcpyHostToDevice); }},
      {"cudaMemcpyAsync", cudaErrorStreamCaptureUnsupported,
       [&] { return cudaMemcpyAsync(data.data(), pageable.data(), kBytes, cudaMemcpyHostToDevice, streams.first); }},
      {"cudaMemcpyAsync", cudaErrorStreamCaptureUnsupported,
       [&] { return cudaMemcpyAsync(pageable.data(), data.data(), kBytes, cudaMemcpyDeviceToHost, streams.first); }},
      {"cudaMemset", cudaErrorStreamCaptureUnsupported, [&] { return cudaMemset(data.data(), 0, kBytes); }},
      {"a copy of a variable", cudaErrorStreamCaptureUnsupported, [&] { return set_coefficients(pageable.data(), 4); }},
      {"cudaMalloc", cudaErrorStreamCaptureUnsupported, [&] { return cudaMalloc(&taken, 100); }},
      {"cudaHostAlloc", cudaErrorStreamCaptureUnsupported, [&] { return cudaMallocHost(&taken, 100); }},
      {"cudaFree", cudaErrorStreamCaptureUnsupported, [&] { return cudaFree(data.data()); }},
      {"cudaFreeAsync", cudaErrorInvalidValue, [&] { return cudaFreeAsync(data.data(), streams.first); }},
      {"cudaStreamWaitEvent", cudaErrorStreamCaptureIsolation,
       [&] { return cudaStreamWaitEvent(streams.first, outside.get()); }},
      {"cudaMemsetAsync", cudaErrorStreamCaptureImplicit, [&] { return cudaMemsetAsync(data.data(), 0, kBytes); }},
      {"cudaEventQuery", cudaErrorCapturedEvent, [&] { return cudaEventQuery(inside.get()); }},
      {"cudaEventSynchronize", cudaErrorCapturedEvent, [&] { return cudaEventSynchronize(inside.get()); }},
  };
  for (const Refused& refused : calls) {
    INFO(refused.call);
    TANDEM_CHECK_CUDA(cudaStreamBeginCapture(streams.first, cudaStreamCaptureModeThreadLocal));
    launch_fill(data.data(), kCount, 1, streams.first);
    inside.record(streams.first);
    CHECK(cudaStreamWaitEvent(streams.first, never.get()) == cudaSuccess);  // nothing to wait for
    CHECK(status_of(streams.first) == cudaStreamCaptureStatusActive);
    CHECK(refused.make() == refused.error);
    CHECK(cudaGetLastError() == refused.error);
    CHECK(status_of(streams.first) == cudaStreamCaptureStatusInvalidated);
    CHECK(cudaMemsetAsync(data.data(), 0, kBytes, streams.first) == cudaErrorStreamCaptureInvalidated);
    CHECK(cudaStreamWaitEvent(streams.second, inside.get()) == cudaErrorStreamCaptureInvalidated);
    CHECK(end(streams.first) == cudaErrorStreamCaptureInvalidated);
    CHECK_THAT(cudaGetErrorString(cudaErrorStreamCaptureInvalidated), ContainsText(refused.call));
    check_usable(streams.first);
    check_usable(streams.second);
  }
}

TEST_CASE("a capture begins once, and ends where and in the thread that it began") {
  const TwoStreams streams;
  CHECK(cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeThreadLocal) == cudaErrorStreamCaptureUnsupported);
  CHECK(end(streams.first) == cudaErrorIllegalState);
  TANDEM_CHECK_CUDA(cudaStreamBeginCapture(streams.first, cudaStreamCaptureModeThreadLocal));
  CHECK(cudaStreamBeginCapture(streams.first, cudaStreamCaptureModeThreadLocal) == cudaErrorIllegalState);
  cudaError_t elsewhere = cudaSuccess;
  std::thread([&] { elsewhere = end(streams.first); }).join();
  CHECK(elsewhere == cudaErrorStreamCaptureWrongThread);
  CHECK(end(streams.first) == cudaSuccess);

  TANDEM_CHECK_CUDA(cudaStreamBeginCapture(streams.first, cudaStreamCaptureModeThreadLocal));
  order(streams.first, streams.second);
  CHECK(status_of(streams.second) == cudaStreamCaptureStatusActive);
  CHECK(end(streams.second) == cudaErrorStreamCaptureUnmatched);
  CHECK(end(streams.first) == cudaErrorStreamCaptureInvalidated);
  check_usable(streams.second);
}

TEST_CASE("every stream that takes part in a capture is joined in the end") {
  const TwoStreams streams;
  const DeviceBuffer<int> a(kCount), b(kCount);
  for (const bool joined : {false, true}) {
    TANDEM_CHECK_CUDA(cudaStreamBeginCapture(streams.first, cudaStreamCaptureModeThreadLocal));
    launch_fill(a.data(), kCount, 1, streams.first);
    order(streams.first, streams.second);
    launch_fill(b.data(), kCount, 1, streams.second);
    if (joined) order(streams.second, streams.first);
    CHECK(end(streams.first) == (joined ? cudaSuccess : cudaErrorStreamCaptureUnjoined));
    check_usable(streams.first);
    check_usable(streams.second);
  }
}

TEST_CASE("two captures cannot become one") {
  const TwoStreams streams;
  const MarkedEvent event;
  TANDEM_CHECK_CUDA(cudaStreamBeginCapture(streams.first, cudaStreamCaptureModeThreadLocal));
  TANDEM_CHECK_CUDA(cudaStreamBeginCapture(streams.second, cudaStreamCaptureModeThreadLocal));
  cudaStreamCaptureStatus status{};
  unsigned long long first = 0, second = 0;
  TANDEM_CHECK_CUDA(cudaStreamGetCaptureInfo(streams.first, &status, &first));
  TANDEM_CHECK_CUDA(cudaStreamGetCaptureInfo(streams.second, &status, &second));
  CHECK(first != second);
  event.record(streams.first);
  CHECK(cudaStreamWaitEvent(streams.second, event.get()) == cudaErrorStreamCaptureMerge);
  CHECK(end(streams.first) == cudaErrorStreamCaptureInvalidated);
  CHECK(end(streams.second) == cudaErrorStreamCaptureInvalidated);
  check_usable(streams.first);
}

TEST_CASE("an event that was recorded in a capture stays one, until it is recorded anew") {
  const TwoStreams streams;
  cudaEvent_t event = nullptr;
  TANDEM_CHECK_CUDA(cudaEventCreate(&event));
  TANDEM_CHECK_CUDA(cudaStreamBeginCapture(streams.first, cudaStreamCaptureModeThreadLocal));
  TANDEM_CHECK_CUDA(cudaEventRecord(event, streams.first));
  CHECK(end(streams.first) == cudaSuccess);
  CHECK(cudaEventQuery(event) == cudaErrorCapturedEvent);
  CHECK(cudaEventSynchronize(event) == cudaErrorCapturedEvent);
  CHECK(cudaStreamWaitEvent(streams.second, event) == cudaErrorCapturedEvent);
  cudaGetLastError();
  TANDEM_CHECK_CUDA(cudaEventRecord(event, streams.first));
  CHECK(cudaEventSynchronize(event) == cudaSuccess);
  CHECK(cudaStreamWaitEvent(streams.second, event) == cudaSuccess);
  TANDEM_CHECK_CUDA(cudaEventDestroy(event));
}

TEST_CASE("a capture forbids other threads to wait only where it is global, and its own not where it is relaxed") {
  const TwoStreams streams;
  const MarkedEvent outside;
  outside.record(streams.second);
  const auto asked_by = [&](bool other_thread, cudaStreamCaptureMode mode) {
    TANDEM_CHECK_CUDA(cudaStreamBeginCapture(streams.first, mode));
    cudaError_t asked = cudaSuccess;
    const auto ask = [&] {
      asked = cudaEventQuery(outside.get());
      cudaGetLastError();
    };
    if (other_thread)
      std::thread(ask).join();
    else
      ask();
    CHECK(end(streams.first) == (asked == cudaSuccess ? cudaSuccess : cudaErrorStreamCaptureInvalidated));
    return asked;
  };
  CHECK(asked_by(true, cudaStreamCaptureModeGlobal) == cudaErrorStreamCaptureUnsupported);
  CHECK(asked_by(true, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
  CHECK(asked_by(true, cudaStreamCaptureModeRelaxed) == cudaSuccess);
  CHECK(asked_by(false, cudaStreamCaptureModeThreadLocal) == cudaErrorStreamCaptureUnsupported);
  CHECK(asked_by(false, cudaStreamCaptureModeRelaxed) == cudaSuccess);
}

TEST_CASE("the legacy stream takes no work of any thread while a stream that it waits for is captured") {
  const DeviceBuffer<int> data(kCount);
  cudaStream_t blocking = nullptr;
  TANDEM_CHECK_CUDA(cudaStreamCreate(&blocking));
  const TwoStreams streams;
  const auto used_beside = [&](cudaStream_t stream) {
    TANDEM_CHECK_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    cudaError_t used = cudaSuccess;
    std::thread([&] { used = cudaMemsetAsync(data.data(), 0, kBytes); }).join();
    end(stream);
    return used;
  };
  CHECK(used_beside(blocking) == cudaErrorStreamCaptureImplicit);
  CHECK(used_beside(streams.first) == cudaSuccess);
  TANDEM_CHECK_CUDA(cudaStreamDestroy(blocking));
}

TEST_CASE("a stream that is destroyed in a capture ends it") {
  const TwoStreams streams;
  cudaStream_t side = nullptr;
  TANDEM_CHECK_CUDA(cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking));
  TANDEM_CHECK_CUDA(cudaStreamBeginCapture(streams.first, cudaStreamCaptureModeThreadLocal));
  order(streams.first, side);
  order(side, streams.first);
  TANDEM_CHECK_CUDA(cudaStreamDestroy(side));
  CHECK(end(streams.first) == cudaErrorStreamCaptureInvalidated);
}

TEST_CASE("a capture whose first stream is destroyed forbids nothing any more") {
  cudaStream_t first = nullptr, side = nullptr;
  TANDEM_CHECK_CUDA(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking));
  TANDEM_CHECK_CUDA(cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking));
  TANDEM_CHECK_CUDA(cudaStreamBeginCapture(first, cudaStreamCaptureModeThreadLocal));
  order(first, side);
  TANDEM_CHECK_CUDA(cudaStreamDestroy(first));
  CHECK_THAT(cudaGetErrorString(cudaErrorStreamCaptureInvalidated), ContainsText("cudaStreamDestroy"));
  check_usable(side);  // which takes memory by cudaMalloc
  TANDEM_CHECK_CUDA(cudaStreamDestroy(side));
}

TEST_CASE("a graph is not launched into a capture") {
  const TwoStreams streams;
  const DeviceBuffer<int> data(kCount);
  const CapturedGraph graph(streams.first, [&] { launch_fill(data.data(), kCount, 1, streams.first); });
  TANDEM_CHECK_CUDA(cudaStreamBeginCapture(streams.first, cudaStreamCaptureModeThreadLocal));
  CHECK(cudaGraphLaunch(graph.executable(), streams.first) == cudaErrorStreamCaptureUnsupported);
  CHECK(end(streams.first) == cudaErrorStreamCaptureInvalidated);
  CHECK(cudaGraphLaunch(nullptr, streams.first) == cudaErrorInvalidValue);
  cudaGetLastError();
}
