// Memory that graphs take and free by themselves.
#include "tandem/simulator/runtime.h"
#include "tandem/simulator/shadow.h"
#include "tests/simulator/captured_graph.h"
#include "tests/simulator/device_buffer.h"
#include "tests/simulator/graph_checks.h"
#include "tests/simulator/restore_settings.h"
#include "tests/simulator/runtime_kernels.h"
#include "tests/support/catch.h"

#include <vector>

using namespace tandem;
using namespace tandem::test;

TEST_CASE("memory that a graph takes and frees is in use during its launches alone") {
  in_both_modes([] {
    const TwoStreams streams;
    const DeviceBuffer<int> a(all(1)), b(kCount);
    std::size_t free_before = 0, free_after = 0, total = 0;
    TANDEM_CHECK_CUDA(cudaMemGetInfo(&free_before, &total));
    int* between = nullptr;
    {
      const CapturedGraph graph(streams.first, [&] {
        TANDEM_CHECK_CUDA(cudaMallocAsync(&between, kBytes, streams.first));
        launch_add(a.data(), between, kCount, 1, streams.first);
        launch_add(between, b.data(), kCount, 1, streams.first);
        TANDEM_CHECK_CUDA(cudaFreeAsync(between, streams.first));
      });
      std::vector<int> host(kCount);
      const auto touch = [&] { cudaMemcpy(host.data(), between, kBytes, cudaMemcpyDeviceToHost); };
      CHECK_THAT(fault_of(touch), ContainsText("access out of bounds") && ContainsText("a graph's and not in use"));
      for (int i = 0; i < 3; ++i) {
        launch_fill(a.data(), kCount, i, streams.first);
        graph.launch(streams.first);
        TANDEM_CHECK_CUDA(cudaStreamSynchronize(streams.first));
        CHECK(b.download() == all(i + 2));
      }
      CHECK_THAT(fault_of(touch), ContainsText("access out of bounds"));
      CHECK(cudaFreeAsync(between, streams.first) == cudaErrorInvalidValue);
      cudaGraphExec_t another = nullptr;
      CHECK(cudaGraphInstantiate(&another, graph.graph()) == cudaErrorNotSupported);
      cudaGetLastError();
    }
    TANDEM_CHECK_CUDA(cudaMemGetInfo(&free_after, &total));
    CHECK(free_after == free_before);
  });
}

TEST_CASE("memory that a graph leaves is taken by one launch, and freed before the next") {
  in_both_modes([] {
    const TwoStreams streams;
    int* left = nullptr;
    const auto value_there = [&] {
      std::vector<int> host(kCount);
      TANDEM_CHECK_CUDA(cudaMemcpyAsync(host.data(), left, kBytes, cudaMemcpyDeviceToHost, streams.first));
      TANDEM_CHECK_CUDA(cudaStreamSynchronize(streams.first));
      return host[kCount - 1];
    };
    {
      const CapturedGraph graph(streams.first, [&] {
        TANDEM_CHECK_CUDA(cudaMallocAsync(&left, kBytes, streams.first));
        launch_fill(left, kCount, 4, streams.first);
      });
      graph.launch(streams.first);
      CHECK(value_there() == 4);
      CHECK(cudaGraphLaunch(graph.executable(), streams.first) == cudaErrorInvalidValue);
      cudaGetLastError();
      TANDEM_CHECK_CUDA(cudaFreeAsync(left, streams.first));
      graph.launch(streams.first);
    }
    CHECK(value_there() == 4);  // the graph is gone, the memory is not
    TANDEM_CHECK_CUDA(cudaFreeAsync(left, streams.first));
    TANDEM_CHECK_CUDA(cudaStreamSynchronize(streams.first));
  });
}

TEST_CASE("a graph takes its memory for a stream, once, and gives back what no launch has left") {
  const RestoreSettings restore;
  const TwoStreams streams;
  const DeviceBuffer<int> a(all(1));
  int *between = nullptr, *left = nullptr;
  const CapturedGraph graph(streams.first, [&] {
    TANDEM_CHECK_CUDA(cudaMallocAsync(&between, kBytes, streams.first));
    launch_add(a.data(), between, kCount, 1, streams.first);
    TANDEM_CHECK_CUDA(cudaFreeAsync(between, streams.first));
  });
  const CapturedGraph leaving(streams.first, [&] {
    TANDEM_CHECK_CUDA(cudaMallocAsync(&left, kBytes, streams.first));
    launch_fill(left, kCount, 4, streams.first);
  });
  /// Whether a launch there takes memory.
  const auto takes_some = [](const CapturedGraph& one, cudaStream_t stream) {
    simulator::fail_allocation(1);
    const cudaError_t status = cudaGraphLaunch(one.executable(), stream);
    cudaGetLastError();
    simulator::fail_allocation(0);
    if (status != cudaSuccess) one.launch(stream);
    return status == cudaErrorMemoryAllocation;
  };
  TANDEM_CHECK_CUDA(cudaGraphUpload(graph.executable(), streams.first));
  CHECK_FALSE(takes_some(graph, streams.first));
  CHECK(takes_some(graph, streams.second));
  CHECK_FALSE(takes_some(graph, streams.second));
  CHECK(takes_some(leaving, streams.first));
  TANDEM_CHECK_CUDA(cudaDeviceGraphMemTrim(0));
  CHECK(takes_some(graph, streams.second));
  TANDEM_CHECK_CUDA(cudaFreeAsync(left, streams.first));
  CHECK_FALSE(takes_some(leaving, streams.first));  // it was not to be trimmed
  TANDEM_CHECK_CUDA(cudaFreeAsync(left, streams.first));
  TANDEM_CHECK_CUDA(cudaDeviceGraphMemTrim(0));
  CHECK(takes_some(leaving, streams.first));
  TANDEM_CHECK_CUDA(cudaFreeAsync(left, streams.first));
  TANDEM_CHECK_CUDA(cudaDeviceSynchronize());
}

TEST_CASE("a graph that uses its memory after it has freed it, or beside that, is wrong at its launch") {
  if constexpr (!simulator::kChecksMemory) return;
  const TwoStreams streams;
  const auto said = [&](bool beside) {
    return fault_of([&] {
      const DeviceBuffer<int> b(kCount);
      int* between = nullptr;
      const CapturedGraph graph(streams.first, [&] {
        TANDEM_CHECK_CUDA(cudaMallocAsync(&between, kBytes, streams.first));
        launch_fill(between, kCount, 4, streams.first);
        if (beside) {
          order(streams.first, streams.second);
          launch_add(between, b.data(), kCount, 1, streams.second);
        }
        TANDEM_CHECK_CUDA(cudaFreeAsync(between, streams.first));
        if (beside)
          order(streams.second, streams.first);
        else
          launch_add(between, b.data(), kCount, 1, streams.first);
      });
      graph.launch(streams.first);
    });
  };
  CHECK_THAT(said(true), ContainsText("data race in cudaFreeAsync"));
  CHECK_THAT(said(false), ContainsText("access out of bounds"));
}
