// The simulated CUDA runtime: order between streams, errors, and allocations that fail.
#include "tandem/simulator/fault.h"
#include "tests/simulator/device_buffer.h"
#include "tests/simulator/restore_settings.h"
#include "tests/simulator/runtime_kernels.h"
#include "tests/simulator/two_streams.h"
#include "tests/support/catch.h"

#include <atomic>
#include <thread>
#include <vector>

using namespace tandem;
using namespace tandem::test;

namespace {

constexpr int kCount = 64;

/// Fills on the first stream, and adds on the second; order(streams, filled) comes between, and the event `filled`
/// after the fill.
template <typename Order>
void check_fill_then_add(Order&& order) {
  const TwoStreams streams;
  const DeviceBuffer<int> a(kCount), b(kCount);
  cudaEvent_t filled = nullptr;
  TANDEM_CHECK_CUDA(cudaEventCreate(&filled));
  launch_fill(a.data(), kCount, 5, streams.first);
  TANDEM_CHECK_CUDA(cudaEventRecord(filled, streams.first));
  order(streams, filled);
  launch_add(a.data(), b.data(), kCount, 2, streams.second);
  TANDEM_CHECK_CUDA(cudaStreamSynchronize(streams.second));
  CHECK(b.download() == std::vector<int>(kCount, 7));
  TANDEM_CHECK_CUDA(cudaEventDestroy(filled));
}

}  // namespace

TEST_CASE("events order streams, whenever their work is done") {
  const RestoreSettings restore;
  for (const auto mode : {simulator::Streams::eager, simulator::Streams::deferred}) {
    simulator::settings().streams = mode;
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
      simulator::settings().seed = seed;
      check_fill_then_add([](const TwoStreams& streams, cudaEvent_t filled) {
        TANDEM_CHECK_CUDA(cudaStreamWaitEvent(streams.second, filled));
      });
    }
  }
}

TEST_CASE("deferred work shows a host that does not wait") {
  const RestoreSettings restore;
  simulator::settings().streams = simulator::Streams::deferred;
  const TwoStreams streams;
  const DeviceBuffer<int> data(kCount);
  void* pinned = nullptr;
  TANDEM_CHECK_CUDA(cudaMallocHost(&pinned, kCount * sizeof(int)));
  int* const result = static_cast<int*>(pinned);
  result[0] = -1;
  launch_fill(data.data(), kCount, 3, streams.first);
  TANDEM_CHECK_CUDA(cudaMemcpyAsync(result, data.data(), kCount * sizeof(int), cudaMemcpyDeviceToHost, streams.first));
  CHECK(cudaStreamQuery(streams.first) == cudaErrorNotReady);
  CHECK(result[0] == -1);
  TANDEM_CHECK_CUDA(cudaStreamSynchronize(streams.first));
  CHECK(result[0] == 3);
  TANDEM_CHECK_CUDA(cudaFreeHost(pinned));
}

TEST_CASE("a query that says yes orders what comes after it, as a wait does") {
  const RestoreSettings restore;
  for (const auto mode : {simulator::Streams::eager, simulator::Streams::deferred}) {
    simulator::settings().streams = mode;
    for (const bool by_event : {false, true}) {
      check_fill_then_add([&](const TwoStreams& streams, cudaEvent_t filled) {
        while ((by_event ? cudaEventQuery(filled) : cudaStreamQuery(streams.first)) == cudaErrorNotReady) {
        }
      });
    }
  }
}

TEST_CASE("copies to and from variables of the device wait for kernels, and stay within the variable") {
  const RestoreSettings restore;
  const std::vector<int> first{1, 2, 3, 4}, second{5, 6, 7, 8};
  for (const auto mode : {simulator::Streams::eager, simulator::Streams::deferred}) {
    simulator::settings().streams = mode;
    const DeviceBuffer<int> a(4), b(4);
    TANDEM_CHECK_CUDA(set_coefficients(first.data(), 4));
    launch_read_coefficients(a.data());
    TANDEM_CHECK_CUDA(set_coefficients(second.data(), 4));
    launch_read_coefficients(b.data());
    CHECK(a.download() == first);
    CHECK(b.download() == second);
    CHECK(set_coefficients(first.data(), 4, 1) == cudaErrorInvalidValue);
    int last = 0;
    CHECK(get_coefficients(&last, 1, 4) == cudaErrorInvalidValue);
    cudaGetLastError();
    TANDEM_CHECK_CUDA(get_coefficients(&last, 1, 3));
    CHECK(last == 8);
  }
}

TEST_CASE("a launch after one that failed starts from nothing") {
  const DeviceBuffer<int> count(1);
  CHECK_THROWS_AS(launch_count_threads(count.data(), 63), simulator::Fault);
  launch_count_threads(count.data(), -1);
  CHECK(count.download() == std::vector<int>{64});
}

TEST_CASE("code of the host that runs beside a kernel is not taken for the kernel's") {
  std::vector<int> memory(1000);
  std::atomic<bool> stop = false, begun = false;
  int rounds = 0;
  std::thread host([&] { rounds = count_on_host(memory, stop, begun); });
  while (!begun) std::this_thread::yield();
  const DeviceBuffer<int> count(1);
  for (int i = 0; i < 500; ++i) launch_count_threads(count.data(), -1);
  const cudaError_t status = cudaDeviceSynchronize();
  stop = true;
  host.join();
  CHECK(status == cudaSuccess);
  CHECK(count.download() == std::vector<int>{64});
  CHECK(memory == std::vector<int>(1000, rounds));
}

TEST_CASE("the n-th allocation fails on request") {
  for (const int nth : {1, 3}) {
    simulator::fail_allocation(nth);
    std::vector<void*> blocks;
    for (int i = 1; i <= 4; ++i) {
      void* block = nullptr;
      const cudaError_t status = cudaMalloc(&block, 1000);
      CHECK(status == (i == nth ? cudaErrorMemoryAllocation : cudaSuccess));
      blocks.push_back(block);
    }
    cudaGetLastError();
    for (void* const block : blocks) TANDEM_CHECK_CUDA(cudaFree(block));
  }
}

TEST_CASE("tries of another thread neither fail nor count where this one's are to") {
  const auto take = [] {
    void* block = nullptr;
    const cudaError_t status = cudaMalloc(&block, 1000);
    cudaGetLastError();
    TANDEM_CHECK_CUDA(cudaFree(block));
    return status;
  };
  simulator::fail_allocation(2);
  std::vector<cudaError_t> others;
  std::thread([&] {
    for (int i = 0; i < 4; ++i) others.push_back(take());
  }).join();
  CHECK(others == std::vector<cudaError_t>(4, cudaSuccess));
  CHECK(take() == cudaSuccess);
  CHECK(take() == cudaErrorMemoryAllocation);
  CHECK(take() == cudaSuccess);
}

TEST_CASE("as many tries as wanted fail one after another, and none without a number") {
  const auto failing = [](std::int64_t nth, std::int64_t times) {
    simulator::fail_allocation(nth, times);
    std::vector<int> failed;
    for (int i = 1; i <= 6; ++i) {
      void* block = nullptr;
      if (cudaMalloc(&block, 1000) != cudaSuccess) failed.push_back(i);
      cudaGetLastError();
      TANDEM_CHECK_CUDA(cudaFree(block));
    }
    simulator::fail_allocation(0);
    return failed;
  };
  CHECK(failing(2, 1) == std::vector<int>{2});
  CHECK(failing(2, 3) == std::vector<int>{2, 3, 4});
  CHECK(failing(6, 3) == std::vector<int>{6});
  CHECK(failing(0, 3).empty());
  CHECK(failing(-1, 3).empty());
  void* block = nullptr;
  simulator::fail_host_allocation(2);
  CHECK(cudaMallocHost(&block, 100) == cudaSuccess);
  TANDEM_CHECK_CUDA(cudaFreeHost(block));
  CHECK(cudaMallocHost(&block, 100) == cudaErrorMemoryAllocation);
  cudaGetLastError();
}

TEST_CASE("memory ends where the settings say") {
  std::size_t free = 0, total = 0;
  TANDEM_CHECK_CUDA(cudaMemGetInfo(&free, &total));
  CHECK(total == simulator::settings().memory_bytes);
  void* block = nullptr;
  CHECK(cudaMalloc(&block, total + 1) == cudaErrorMemoryAllocation);
  CHECK(cudaGetLastError() == cudaErrorMemoryAllocation);
  CHECK(cudaGetLastError() == cudaSuccess);
}

TEST_CASE("wrong calls get CUDA's error codes") {
  const DeviceBuffer<int> data(kCount);
  std::vector<int> host(kCount);
  CHECK(cudaMemcpy(host.data(), data.data(), 4, cudaMemcpyHostToDevice) == cudaErrorInvalidMemcpyDirection);
  CHECK(cudaFree(host.data()) == cudaErrorInvalidValue);
  CHECK(cudaSetDevice(7) == cudaErrorInvalidDevice);
  CHECK(cudaStreamDestroy(nullptr) == cudaErrorInvalidResourceHandle);
  cudaGetLastError();
  CHECK(launch_with_shared(48 * 1024) == cudaSuccess);
  CHECK(launch_with_shared(48 * 1024 + 1) == cudaErrorInvalidValue);
  const RestoreSettings restore;
  simulator::settings().devices = 0;
  int count = -1;
  CHECK(cudaGetDeviceCount(&count) == cudaErrorNoDevice);
  CHECK(count == 0);
  cudaGetLastError();
}
