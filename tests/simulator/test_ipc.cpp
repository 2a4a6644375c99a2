// Memory and events of a simulated GPU in another process.
#include "tandem/simulator/fault.h"
#include "tests/simulator/device_buffer.h"
#include "tests/simulator/restore_settings.h"
#include "tests/simulator/runtime_kernels.h"
#include "tests/simulator/two_streams.h"
#include "tests/support/catch.h"

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>
#include <vector>

using namespace tandem;
using namespace tandem::test;

namespace {

constexpr int kCount = 64;

/// Runs `body` in a process of its own; whether it returned true.
template <typename Body>
bool is_so_elsewhere(Body&& body) {
  const pid_t child = fork();
  if (child == 0) {
    bool is_so = false;
    try {
      is_so = body();
    } catch (...) {
      _exit(3);
    }
    _exit(is_so ? 0 : 2);
  }
  int status = 0;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

TEST_CASE("another process reads and writes exported memory, and closes it") {
  DeviceBuffer<int> buffer(std::vector<int>(kCount, 5));
  cudaIpcMemHandle_t handle{};
  TANDEM_CHECK_CUDA(cudaIpcGetMemHandle(&handle, buffer.data()));
  CHECK(buffer.download() == std::vector<int>(kCount, 5));
  CHECK(is_so_elsewhere([&] {
    void* memory = nullptr;
    if (cudaIpcOpenMemHandle(&memory, handle, cudaIpcMemLazyEnablePeerAccess) != cudaSuccess) return false;
    std::vector<int> seen(kCount);
    TANDEM_CHECK_CUDA(cudaMemcpy(seen.data(), memory, kCount * sizeof(int), cudaMemcpyDeviceToHost));
    launch_fill(static_cast<int*>(memory), kCount / 2, 9, nullptr);
    TANDEM_CHECK_CUDA(cudaDeviceSynchronize());
    return seen == std::vector<int>(kCount, 5) && cudaFree(memory) == cudaErrorInvalidValue &&
           cudaIpcCloseMemHandle(memory) == cudaSuccess && cudaIpcCloseMemHandle(memory) == cudaErrorInvalidValue;
  }));
  const std::vector<int> after = buffer.download();
  CHECK(after.front() == 9);
  CHECK(after[kCount / 2 - 1] == 9);
  CHECK(after[kCount / 2] == 5);
}

TEST_CASE("accesses of another process's memory are held to its bounds") {
  const DeviceBuffer<int> buffer(std::vector<int>(kCount, 5));
  cudaIpcMemHandle_t handle{};
  TANDEM_CHECK_CUDA(cudaIpcGetMemHandle(&handle, buffer.data()));
  CHECK(is_so_elsewhere([&] {
    void* memory = nullptr;
    TANDEM_CHECK_CUDA(cudaIpcOpenMemHandle(&memory, handle, cudaIpcMemLazyEnablePeerAccess));
    std::vector<int> seen(kCount + 1);
    try {
      cudaMemcpy(seen.data(), memory, (kCount + 1) * sizeof(int), cudaMemcpyDeviceToHost);
    } catch (const simulator::Fault& fault) {
      return fault.kind() == simulator::FaultKind::out_of_bounds;
    }
    return false;
  }));
}

TEST_CASE("handles of memory that cannot be shared are refused") {
  cudaIpcMemHandle_t handle{};
  void *pooled = nullptr, *opened = nullptr;
  TANDEM_CHECK_CUDA(cudaMallocAsync(&pooled, 100, nullptr));
  CHECK(cudaIpcGetMemHandle(&handle, pooled) == cudaErrorInvalidValue);
  TANDEM_CHECK_CUDA(cudaFreeAsync(pooled, nullptr));
  const DeviceBuffer<int> buffer(100);
  CHECK(cudaIpcGetMemHandle(&handle, buffer.data() + 1) == cudaErrorInvalidValue);
  TANDEM_CHECK_CUDA(cudaIpcGetMemHandle(&handle, buffer.data()));
  CHECK(cudaIpcOpenMemHandle(&opened, handle, cudaIpcMemLazyEnablePeerAccess) == cudaErrorDeviceUninitialized);
  CHECK(cudaIpcOpenMemHandle(&opened, handle, 0) == cudaErrorInvalidValue);
  CHECK(cudaIpcOpenMemHandle(&opened, {}, cudaIpcMemLazyEnablePeerAccess) == cudaErrorInvalidResourceHandle);
  CHECK(cudaIpcCloseMemHandle(buffer.data()) == cudaErrorInvalidValue);
  cudaGetLastError();
}

TEST_CASE("memory that is freed while another process has it open is a fault") {
  int from_child[2], to_child[2];
  REQUIRE(pipe(from_child) == 0);
  REQUIRE(pipe(to_child) == 0);
  void* memory = nullptr;
  TANDEM_CHECK_CUDA(cudaMalloc(&memory, 5000));
  cudaIpcMemHandle_t handle{};
  TANDEM_CHECK_CUDA(cudaIpcGetMemHandle(&handle, memory));
  const pid_t child = fork();
  char byte = 0;
  if (child == 0) {
    void* opened = nullptr;
    const bool is_open = cudaIpcOpenMemHandle(&opened, handle, cudaIpcMemLazyEnablePeerAccess) == cudaSuccess;
    const bool is_told = write(from_child[1], &byte, 1) == 1 && read(to_child[0], &byte, 1) == 1;
    _exit(is_open && is_told ? 0 : 2);
  }
  REQUIRE(read(from_child[0], &byte, 1) == 1);
  std::string text;
  try {
    cudaFree(memory);
  } catch (const simulator::Fault& fault) {
    text = fault.what();
  }
  CHECK_THAT(text, ContainsText("is freed while it is open 1 times in other processes"));
  REQUIRE(write(to_child[1], &byte, 1) == 1);
  int status = 0;
  CHECK((waitpid(child, &status, 0) == child && status == 0));
  for (const int file : {from_child[0], from_child[1], to_child[0], to_child[1]}) close(file);
}

TEST_CASE("a process waits for what another one has recorded, as late as that is done") {
  const RestoreSettings restore;
  cudaEvent_t event = nullptr;
  TANDEM_CHECK_CUDA(cudaEventCreateWithFlags(&event, cudaEventInterprocess | cudaEventDisableTiming));
  cudaIpcEventHandle_t of_event{};
  cudaIpcMemHandle_t of_memory{};
  TANDEM_CHECK_CUDA(cudaIpcGetEventHandle(&of_event, event));
  const DeviceBuffer<int> buffer(std::vector<int>(kCount, 5));
  TANDEM_CHECK_CUDA(cudaIpcGetMemHandle(&of_memory, buffer.data()));
  int to_child[2];
  REQUIRE(pipe(to_child) == 0);
  const pid_t child = fork();
  char byte = 0;
  if (child == 0) {
    cudaEvent_t opened = nullptr;
    void* memory = nullptr;
    std::vector<int> seen(kCount);
    const bool is_told = read(to_child[0], &byte, 1) == 1;
    TANDEM_CHECK_CUDA(cudaIpcOpenEventHandle(&opened, of_event));
    TANDEM_CHECK_CUDA(cudaIpcOpenMemHandle(&memory, of_memory, cudaIpcMemLazyEnablePeerAccess));
    TANDEM_CHECK_CUDA(cudaStreamWaitEvent(nullptr, opened));
    TANDEM_CHECK_CUDA(cudaMemcpy(seen.data(), memory, kCount * sizeof(int), cudaMemcpyDeviceToHost));
    const bool is_passed = cudaEventSynchronize(opened) == cudaSuccess && cudaEventQuery(opened) == cudaSuccess;
    cudaEventDestroy(opened);
    _exit(is_told && is_passed && seen == std::vector<int>(kCount, 7) ? 0 : 2);
  }
  simulator::settings().streams = simulator::Streams::deferred;
  const TwoStreams streams;
  launch_fill(buffer.data(), kCount, 7, streams.first);
  TANDEM_CHECK_CUDA(cudaEventRecord(event, streams.first));
  REQUIRE(write(to_child[1], &byte, 1) == 1);
  int status = 0;  // nothing more is called here before the other process has seen it
  CHECK((waitpid(child, &status, 0) == child && status == 0));
  for (const int file : to_child) close(file);
  TANDEM_CHECK_CUDA(cudaEventDestroy(event));
}

TEST_CASE("a fault before an event that another process may wait for is told by a later call") {
  const RestoreSettings restore;
  cudaEvent_t event = nullptr;
  TANDEM_CHECK_CUDA(cudaEventCreateWithFlags(&event, cudaEventInterprocess | cudaEventDisableTiming));
  cudaIpcEventHandle_t of_event{};
  TANDEM_CHECK_CUDA(cudaIpcGetEventHandle(&of_event, event));
  const DeviceBuffer<int> from(std::vector<int>(kCount, 5)), to(kCount);
  simulator::settings().streams = simulator::Streams::deferred;
  const TwoStreams streams;
  int faults = 0;
  for (const bool by_query : {false, true}) {
    constexpr std::size_t kBytes = (kCount + 1) * sizeof(int);
    TANDEM_CHECK_CUDA(cudaMemcpyAsync(to.data(), from.data(), kBytes, cudaMemcpyDeviceToDevice, streams.first));
    TANDEM_CHECK_CUDA(cudaEventRecord(event, streams.first));
    std::this_thread::sleep_for(std::chrono::milliseconds(100));  // it is run meanwhile, and nobody waits for it
    try {
      by_query ? cudaEventQuery(event) : cudaStreamSynchronize(streams.second);
    } catch (const simulator::Fault& fault) {
      faults += fault.kind() == simulator::FaultKind::out_of_bounds;
    }
  }
  CHECK(faults == 2);
  CHECK(cudaStreamSynchronize(streams.first) == cudaSuccess);  // once
  TANDEM_CHECK_CUDA(cudaEventDestroy(event));
}

TEST_CASE("memory and events of another process can be other than they should be") {
  const RestoreSettings restore;
  cudaEvent_t event = nullptr;
  TANDEM_CHECK_CUDA(cudaEventCreateWithFlags(&event, cudaEventInterprocess | cudaEventDisableTiming));
  cudaIpcEventHandle_t of_event{};
  cudaIpcMemHandle_t of_memory{};
  TANDEM_CHECK_CUDA(cudaIpcGetEventHandle(&of_event, event));
  const DeviceBuffer<int> buffer(std::vector<int>(kCount, 5));
  TANDEM_CHECK_CUDA(cudaIpcGetMemHandle(&of_memory, buffer.data()));
  TANDEM_CHECK_CUDA(cudaEventRecord(event, nullptr));
  TANDEM_CHECK_CUDA(cudaDeviceSynchronize());
  const auto event_is = [&](cudaError_t expected) {
    return is_so_elsewhere([&] {
      cudaEvent_t opened = nullptr;
      return cudaIpcOpenEventHandle(&opened, of_event) == cudaSuccess && cudaEventQuery(opened) == expected;
    });
  };
  CHECK(event_is(cudaSuccess));
  simulator::settings().ipc = simulator::Ipc::stuck;
  CHECK(event_is(cudaErrorNotReady));
  simulator::settings().ipc = simulator::Ipc::foreign;
  CHECK(is_so_elsewhere([&] {
    void* memory = nullptr;
    std::vector<int> seen(kCount, 1);
    return cudaIpcOpenMemHandle(&memory, of_memory, cudaIpcMemLazyEnablePeerAccess) == cudaSuccess &&
           cudaMemcpy(seen.data(), memory, kCount * sizeof(int), cudaMemcpyDeviceToHost) == cudaSuccess &&
           cudaIpcCloseMemHandle(memory) == cudaSuccess && seen == std::vector<int>(kCount, 0);
  }));
  TANDEM_CHECK_CUDA(cudaEventDestroy(event));
}

TEST_CASE("events that cannot be shared are refused") {
  cudaEvent_t event = nullptr, other = nullptr;
  cudaIpcEventHandle_t handle{};
  CHECK(cudaEventCreateWithFlags(&event, cudaEventInterprocess) == cudaErrorInvalidValue);
  TANDEM_CHECK_CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  CHECK(cudaIpcGetEventHandle(&handle, event) == cudaErrorInvalidValue);
  CHECK(cudaIpcOpenEventHandle(&other, handle) == cudaErrorInvalidValue);
  TANDEM_CHECK_CUDA(cudaEventDestroy(event));
  TANDEM_CHECK_CUDA(cudaEventCreateWithFlags(&event, cudaEventInterprocess | cudaEventDisableTiming));
  TANDEM_CHECK_CUDA(cudaIpcGetEventHandle(&handle, event));
  CHECK(cudaIpcOpenEventHandle(&other, handle) == cudaErrorDeviceUninitialized);
  TANDEM_CHECK_CUDA(cudaEventDestroy(event));
  cudaGetLastError();
}
