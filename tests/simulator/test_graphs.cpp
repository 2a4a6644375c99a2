// Captured streams and graphs: that a launch does what was captured, in an order that the race detector sees.
#include "tandem/simulator/graph.h"

#include "tandem/simulator/runtime.h"
#include "tandem/simulator/shadow.h"
#include "tests/simulator/captured_graph.h"
#include "tests/simulator/device_buffer.h"
#include "tests/simulator/graph_checks.h"
#include "tests/simulator/restore_settings.h"
#include "tests/simulator/runtime_kernels.h"
#include "tests/support/catch.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

using namespace tandem;
using namespace tandem::test;

namespace {

struct PinnedInts {
  int* data = nullptr;
  PinnedInts() { TANDEM_CHECK_CUDA(cudaMallocHost(&data, kBytes)); }
  ~PinnedInts() {
    if (data != nullptr) cudaFreeHost(data);
  }
  PinnedInts(const PinnedInts&) = delete;
  PinnedInts& operator=(const PinnedInts&) = delete;
  void fill(int value) const { std::fill_n(data, kCount, value); }
};

}  // namespace

TEST_CASE("a graph does nothing as it is captured, and the same at each launch") {
  in_both_modes([] {
    const TwoStreams streams;
    const DeviceBuffer<int> a(all(1)), b(all(-1)), c(all(-2)), d(all(-3));
    int value = 2;
    const CapturedGraph graph(streams.first, [&] {
      launch_add(a.data(), b.data(), kCount, value, streams.first);
      TANDEM_CHECK_CUDA(cudaMemcpyAsync(c.data(), b.data(), kBytes, cudaMemcpyDeviceToDevice, streams.first));
      TANDEM_CHECK_CUDA(cudaMemsetAsync(d.data(), 0, kBytes, streams.first));
    });
    value = 1000;  // the launch has copied what it needs
    TANDEM_CHECK_CUDA(cudaStreamSynchronize(streams.first));
    CHECK(b.download() == all(-1));
    CHECK(c.download() == all(-2));
    CHECK(d.download() == all(-3));
    for (const int input : {1, 10, 100}) {
      launch_fill(a.data(), kCount, input, streams.first);
      launch_fill(d.data(), kCount, 7, streams.first);
      graph.launch(streams.first);
      TANDEM_CHECK_CUDA(cudaStreamSynchronize(streams.first));
      CHECK(c.download() == all(input + 2));
      CHECK(d.download() == all(0));
    }
  });
}

TEST_CASE("launches of a graph come one after another, before the first has ended and on other streams, too") {
  in_both_modes([] {
    const TwoStreams streams;
    const DeviceBuffer<int> a(all(0));
    const CapturedGraph graph(streams.first, [&] { launch_add(a.data(), a.data(), kCount, 1, streams.first); });
    for (int i = 0; i < 3; ++i) {
      graph.launch(streams.first);
      graph.launch(streams.second);
    }
    TANDEM_CHECK_CUDA(cudaStreamSynchronize(streams.second));
    CHECK(a.download() == all(6));
  });
}

TEST_CASE("a graph lists its nodes: kernels, arguments and what they wait for") {
  const TwoStreams streams;
  const DeviceBuffer<int> a(kCount), b(kCount), c(kCount);
  const auto work = [&](int value) {
    return [&, value] {
      launch_fill(a.data(), kCount, value, streams.first);
      order(streams.first, streams.second);
      launch_add(a.data(), b.data(), kCount, 2, streams.second);
      TANDEM_CHECK_CUDA(cudaMemsetAsync(c.data(), 0, kBytes, streams.first));
      order(streams.second, streams.first);
      launch_add(b.data(), c.data(), kCount, 3, streams.first);
    };
  };
  const CapturedGraph graph(streams.first, work(5)), same(streams.first, work(5)), other(streams.first, work(6));
  const std::vector<simulator::GraphNode> nodes = simulator::nodes_of(graph.graph());
  REQUIRE(nodes.size() == 4);
  CHECK_THAT(nodes[0].name, ContainsText("fill"));
  CHECK_THAT(nodes[1].name, ContainsText("add"));
  CHECK(nodes[2].name == "cudaMemsetAsync");
  CHECK(nodes[0].block.x == 64);
  CHECK(nodes[0].grid.x == 1);
  using Numbers = std::vector<std::size_t>;
  CHECK(nodes[0].dependencies == Numbers{});
  CHECK(nodes[1].dependencies == Numbers{0});
  CHECK(nodes[2].dependencies == Numbers{0});
  CHECK(nodes[3].dependencies == Numbers{1, 2});
  CHECK(Numbers{nodes[0].stream, nodes[1].stream, nodes[2].stream, nodes[3].stream} == Numbers{0, 1, 0, 0});
  REQUIRE(nodes[0].arguments.size() == sizeof(int*) + 2 * sizeof(int));
  int value = 0;
  std::memcpy(&value, nodes[0].arguments.data() + sizeof(int*) + sizeof(int), sizeof value);
  CHECK(value == 5);

  CHECK(simulator::nodes_of(graph.executable()) == nodes);
  CHECK(simulator::nodes_of(same.graph()) == nodes);
  const auto others = simulator::nodes_of(other.graph());
  CHECK_FALSE(others == nodes);
  CHECK(others[1] == nodes[1]);

  std::size_t count = 0;
  TANDEM_CHECK_CUDA(cudaGraphGetNodes(graph.graph(), nullptr, &count));
  REQUIRE(count == 4);
  std::vector<cudaGraphNode_t> handles(count);
  TANDEM_CHECK_CUDA(cudaGraphGetNodes(graph.graph(), handles.data(), &count));
  for (std::size_t i = 0; i < count; ++i) {
    cudaGraphNodeType type{};
    TANDEM_CHECK_CUDA(cudaGraphNodeGetType(handles[i], &type));
    CHECK(type == (i == 2 ? cudaGraphNodeTypeMemset : cudaGraphNodeTypeKernel));
  }
}

TEST_CASE("what lies between the members of an argument does not tell two captures apart") {
  const TwoStreams streams;
  const DeviceBuffer<int> a(kCount);
  std::vector<std::vector<simulator::GraphNode>> lists;
  for (const int noise : {0x00, 0xff}) {
    Padded values{};
    std::memset(static_cast<void*>(&values), noise, sizeof values);
    values.first = 1;
    values.second = 2.0;
    values.third = 3;
    const CapturedGraph graph(streams.first, [&] { launch_padded(a.data(), values, streams.first); });
    lists.push_back(simulator::nodes_of(graph.graph()));
  }
  CHECK(lists[0] == lists[1]);
}

TEST_CASE("the race detector follows forks and joins of a graph at every launch") {
  const TwoStreams streams;
  // What each of the three orders is left out for: 0 none, 1 the fork is too early, 2 the join too late.
  const auto launches_with = [&](int mistake) {
    return fault_of([&] {
      const DeviceBuffer<int> a(all(0)), b(all(0)), c(all(0));
      const CapturedGraph graph(streams.first, [&] {
        if (mistake == 1) order(streams.first, streams.second);
        launch_fill(a.data(), kCount, 5, streams.first);
        if (mistake != 1) order(streams.first, streams.second);
        launch_add(a.data(), b.data(), kCount, 2, streams.second);
        if (mistake != 2) order(streams.second, streams.first);
        launch_add(b.data(), c.data(), kCount, 3, streams.first);
        if (mistake == 2) order(streams.second, streams.first);
      });
      for (int i = 0; i < 3; ++i) {
        graph.launch(i == 1 ? streams.second : streams.first);
        TANDEM_CHECK_CUDA(cudaStreamSynchronize(i == 1 ? streams.second : streams.first));
        CHECK(c.download() == all(10));
      }
    });
  };
  in_both_modes([&] { CHECK(launches_with(0).empty()); });
  if constexpr (simulator::kChecksMemory) {
    CHECK_THAT(launches_with(1), ContainsText("data race in") && ContainsText("add"));
    CHECK_THAT(launches_with(2), ContainsText("data race in") && ContainsText("add"));
  }
}

TEST_CASE("the race detector sees what runs beside a graph") {
  const TwoStreams streams;
  const DeviceBuffer<int> a(all(0)), b(all(0)), c(all(0));
  const CapturedGraph graph(streams.first, [&] {  // ends in the second stream's part
    order(streams.first, streams.second);
    launch_add(a.data(), b.data(), kCount, 2, streams.second);
    order(streams.second, streams.first);
  });
  const auto beside = [&](bool ordered_before, bool ordered_after) {
    const std::string said = fault_of([&] {
      launch_fill(a.data(), kCount, 1, streams.second);
      if (ordered_before) order(streams.second, streams.first);
      graph.launch(streams.first);
      if (ordered_after) order(streams.first, streams.second);
      launch_add(b.data(), c.data(), kCount, 1, streams.second);
    });
    TANDEM_CHECK_CUDA(cudaDeviceSynchronize());
    return said;
  };
  CHECK(beside(true, true).empty());
  if constexpr (simulator::kChecksMemory) {
    CHECK_THAT(beside(false, true), ContainsText("data race"));
    CHECK_THAT(beside(true, false), ContainsText("data race"));
  }
}

TEST_CASE("copies of a graph from and to pinned memory read and write it at each launch") {
  in_both_modes([] {
    const TwoStreams streams;
    const DeviceBuffer<int> a(kCount), b(kCount);
    const PinnedInts from, to;
    from.fill(1);
    const CapturedGraph graph(streams.first, [&] {
      TANDEM_CHECK_CUDA(cudaMemcpyAsync(a.data(), from.data, kBytes, cudaMemcpyHostToDevice, streams.first));
      launch_add(a.data(), b.data(), kCount, 1, streams.first);
      TANDEM_CHECK_CUDA(cudaMemcpyAsync(to.data, b.data(), kBytes, cudaMemcpyDeviceToHost, streams.first));
    });
    const auto result = [&] {
      graph.launch(streams.first);
      TANDEM_CHECK_CUDA(cudaStreamSynchronize(streams.first));
      return to.data[kCount - 1];
    };
    const auto before = simulator::runtime_counts().bytes_to_device.load();
    CHECK(result() == 2);
    CHECK(simulator::runtime_counts().bytes_to_device - before == static_cast<std::int64_t>(kBytes));
    from.fill(6);
    CHECK(result() == 7);
    simulator::overwrite_pinned_memory(0x01);  // as if it had been given to somebody else
    CHECK(result() == 0x01010102);
  });
}

TEST_CASE("pinned memory that was freed since the capture is a fault of the launch") {
  const TwoStreams streams;
  const DeviceBuffer<int> a(kCount);
  std::optional<CapturedGraph> graph;
  {
    const PinnedInts from;
    from.fill(1);
    graph.emplace(streams.first, [&] {
      TANDEM_CHECK_CUDA(cudaMemcpyAsync(a.data(), from.data, kBytes, cudaMemcpyHostToDevice, streams.first));
    });
    graph->launch(streams.first);
  }
  CHECK_THAT(fault_of([&] { graph->launch(streams.first); }),
             ContainsText("the pinned host memory that the graph copies from or to has been freed"));
}

TEST_CASE("memory that is overwritten has other bits, and counts as never written") {
  const TwoStreams streams;
  const DeviceBuffer<int> a(all(3)), b(kCount);
  const CapturedGraph graph(streams.first, [&] { launch_add(a.data(), b.data(), kCount, 1, streams.first); });
  graph.launch(streams.first);
  TANDEM_CHECK_CUDA(cudaStreamSynchronize(streams.first));
  CHECK(b.download() == all(4));
  simulator::overwrite_memory(a.data(), kBytes, 0x02);
  if constexpr (simulator::kChecksMemory) {
    CHECK_THAT(fault_of([&] { graph.launch(streams.first); }), ContainsText("read of uninitialised memory"));
  } else {
    graph.launch(streams.first);
    TANDEM_CHECK_CUDA(cudaStreamSynchronize(streams.first));
    CHECK(b.download() == all(0x02020203));
  }
  CHECK_THROWS_AS(simulator::overwrite_memory(a.data(), kBytes + 1), std::out_of_range);
}

TEST_CASE("graphs and executables may go before their launches have ended") {
  const RestoreSettings restore;
  simulator::settings().streams = simulator::Streams::deferred;
  const TwoStreams streams;
  const DeviceBuffer<int> a(all(1)), b(kCount);
  cudaGraphExec_t executable = nullptr;
  int* between = nullptr;
  const cudaGraph_t graph = capture(streams.first, [&] {
    TANDEM_CHECK_CUDA(cudaMallocAsync(&between, kBytes, streams.first));
    launch_add(a.data(), between, kCount, 1, streams.first);
    launch_add(between, b.data(), kCount, 1, streams.first);
    TANDEM_CHECK_CUDA(cudaFreeAsync(between, streams.first));
  });
  TANDEM_CHECK_CUDA(cudaGraphInstantiateWithFlags(&executable, graph, 0));
  TANDEM_CHECK_CUDA(cudaGraphDestroy(graph));
  TANDEM_CHECK_CUDA(cudaGraphUpload(executable, streams.first));
  TANDEM_CHECK_CUDA(cudaGraphLaunch(executable, streams.first));
  TANDEM_CHECK_CUDA(cudaGraphExecDestroy(executable));
  TANDEM_CHECK_CUDA(cudaStreamSynchronize(streams.first));
  CHECK(b.download() == all(3));
}
