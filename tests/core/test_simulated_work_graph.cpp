// Recorded work on simulated GPUs: what is in a graph, its memory, and what happens around its launches.
#include "tandem/core/allocator.h"
#include "tandem/core/error.h"
#include "tandem/core/out.h"
#include "tandem/core/storage.h"
#include "tandem/core/stream.h"
#include "tandem/core/tensor.h"
#include "tandem/core/work_graph.h"
#include "tandem/simulator/fault.h"
#include "tandem/simulator/graph.h"
#include "tandem/simulator/settings.h"
#include "tests/simulator/restore_settings.h"
#include "tests/support/catch.h"
#include "tests/support/cuda_device.h"
#include "tests/support/error_of.h"

#include <algorithm>
#include <numeric>
#include <optional>

using namespace tandem;
using namespace tandem::test;

namespace {

using Nodes = std::vector<simulator::GraphNode>;

Nodes nodes_of(const WorkGraph& graph) { return simulator::nodes_of(static_cast<cudaGraphExec_t>(graph.native())); }

auto count_of(const Nodes& nodes, cudaGraphNodeType type) {
  return std::count_if(nodes.begin(), nodes.end(), [&](const auto& node) { return node.type == type; });
}

Tensor on_gpu(const Shape& shape) { return Tensor::zeros(shape, {.device = kGpu}); }

Tensor numbers(const Shape& shape, int first) {
  const Tensor here = Tensor::zeros(shape);
  float* const values = Out(here).data<float>();
  std::iota(values, values + here.numel(), static_cast<float>(first));
  return here.to(kGpu);
}

/// A copy, a transposed copy, a fill of a part and a copy between strides, with memory of its own.
struct Steps {
  Tensor from = on_gpu({37, 65}), to = on_gpu({65, 37});

  void operator()() const {
    const Tensor between = Tensor::empty({37, 65}, {.device = kGpu});
    between.copy_from_async(from);
    between.narrow(0, 3, 5).fill(-1.5);
    const Tensor turned = Tensor::empty({65, 37}, {.device = kGpu});
    turned.copy_from_async(between.transpose(0, 1));
    to.copy_from_async(turned);
    to.narrow(1, 30, 7).copy_from_async(turned.narrow(1, 0, 7));
  }
};

}  // namespace

TEST_CASE("recorded and eager work have the same bits, launch after launch", "[cuda]") {
  if (!has_gpu()) return;
  const RestoreSettings restore;
  for (const auto mode : {simulator::Streams::eager, simulator::Streams::deferred}) {
    simulator::settings().streams = mode;
    const Steps eager, recorded;
    const WorkGraph graph(kGpu, recorded);
    for (int first = 0; first < 5; ++first) {
      eager.from.copy_from(numbers({37, 65}, 100 * first));
      recorded.from.copy_from(eager.from);
      eager();
      graph.launch();
      if (first == 2) graph.launch();  // before the one before has ended
      CHECK(recorded.to.to_vector<float>() == eager.to.to_vector<float>());
    }
  }
}

TEST_CASE("two recordings of the same work are the same list of nodes", "[cuda]") {
  if (!has_gpu()) return;
  const Steps steps;
  std::optional<WorkGraph> first(std::in_place, kGpu, steps);
  const Nodes nodes = nodes_of(*first);
  CHECK(count_of(nodes, cudaGraphNodeTypeMemAlloc) == 2);
  CHECK(count_of(nodes, cudaGraphNodeTypeMemFree) == 2);
  CHECK(count_of(nodes, cudaGraphNodeTypeMemcpy) == 2);  // of flat memory
  CHECK(count_of(nodes, cudaGraphNodeTypeKernel) == 3);
  first.reset();  // its memory can be taken again
  CHECK(nodes_of(WorkGraph(kGpu, steps)) == nodes);
  const Steps others;
  CHECK_FALSE(nodes_of(WorkGraph(kGpu, others)) == nodes);
}

TEST_CASE("an exception in recorded work leaves no memory and no capture behind", "[cuda]") {
  if (!has_gpu()) return;
  const Steps steps;
  std::size_t before = 0, after = 0, total = 0;
  synchronize(kGpu);
  cudaMemGetInfo(&before, &total);
  CHECK_THAT(error_of([&] {
               WorkGraph(kGpu, [&] {
                 steps();
                 const Tensor live = on_gpu({1000});
                 fail("in the middle");
               });
             }),
             ContainsText("in the middle"));
  synchronize(kGpu);
  cudaMemGetInfo(&after, &total);
  CHECK(after == before);
  steps();
  CHECK(steps.to.to_vector<float>()[3] == -1.5F);
}

TEST_CASE("recorded work that finds no memory says so, and does not wait for any", "[cuda]") {
  if (!has_gpu()) return;
  const Steps steps;
  for (const int nth : {1, 2}) {
    CHECK_THAT(error_of([&] {
                 WorkGraph(kGpu, [&] {
                   simulator::fail_allocation(nth);
                   steps();
                 });
               }),
               ContainsText("out of memory on cuda:0"));
    simulator::fail_allocation(0);
  }
  const WorkGraph graph(kGpu, steps);
  graph.launch();
  CHECK(steps.to.to_vector<float>()[3] == -1.5F);
}

TEST_CASE("memory that the allocator keeps stays while work is recorded, as giving it back would wait", "[cuda]") {
  if (!has_gpu()) return;
  const Steps steps;
  (void)on_gpu({100'000});
  synchronize(kGpu);
  const WorkGraph graph(kGpu, [&] {
    steps();
    allocator_for(kGpu).release_cached();
  });
  CHECK(allocator_for(kGpu).cached_bytes() > 0);
  graph.launch();
  CHECK(steps.to.to_vector<float>()[3] == -1.5F);
}

TEST_CASE("a graph has what the allocator keeps where there is no other memory for it", "[cuda]") {
  if (!has_gpu()) return;
  const Steps steps;
  (void)on_gpu({100'000});  // more than the work takes
  synchronize(kGpu);
  CHECK(allocator_for(kGpu).cached_bytes() > 0);
  const WorkGraph graph(kGpu, [&] {
    steps();
    simulator::fail_allocation(1);
  });
  CHECK(allocator_for(kGpu).cached_bytes() == 0);
  simulator::fail_allocation(1);
  graph.launch();  // takes none
  simulator::fail_allocation(0);
  CHECK(steps.to.to_vector<float>()[3] == -1.5F);
}

TEST_CASE("a graph that finds no memory is an error of its recording, not of its launch", "[cuda]") {
  if (!has_gpu()) return;
  const Steps steps;
  int actions = 0;
  CHECK_THAT(error_of([&] {
               WorkGraph(kGpu, [&] {
                 steps();
                 WorkGraph::with_each_launch([&] { ++actions; });
                 simulator::fail_allocation(1, 2);
               });
             }),
             ContainsText("cudaGraphUpload") && ContainsText("cudaErrorMemoryAllocation"));
  CHECK(actions == 0);
  const WorkGraph graph(kGpu, steps);
  graph.launch();
  CHECK(steps.to.to_vector<float>()[3] == -1.5F);
}

TEST_CASE("a graph that finds no memory as it is instantiated leaves no error for what comes next", "[cuda]") {
  if (!has_gpu()) return;
  const Steps steps;
  CHECK_THAT(error_of([&] {
               WorkGraph(kGpu, [&] {
                 steps();
                 simulator::fail_instantiation(1);
               });
             }),
             ContainsText("cudaGraphInstantiateWithFlags") && ContainsText("cudaErrorMemoryAllocation"));
  CHECK(cudaPeekAtLastError() == cudaSuccess);
  steps();
  CHECK(steps.to.to_vector<float>()[3] == -1.5F);
}

TEST_CASE("memory of graphs is given back with what the allocator keeps, and taken anew by the next launch", "[cuda]") {
  if (!has_gpu()) return;
  const Steps steps;
  const WorkGraph graph(kGpu, steps);
  graph.launch();
  allocator_for(kGpu).release_cached();
  simulator::fail_allocation(1, 2);
  CHECK_THAT(error_of([&] { graph.launch(); }),
             ContainsText("cudaGraphLaunch") && ContainsText("cudaErrorMemoryAllocation"));
  simulator::fail_allocation(1);
  graph.launch();  // once more, behind what it releases
  simulator::fail_allocation(1);
  graph.launch();  // takes none
  CHECK(cudaPeekAtLastError() == cudaSuccess);
  simulator::fail_allocation(0);
  CHECK(steps.to.to_vector<float>()[3] == -1.5F);
}

TEST_CASE("an error of a call that could not throw shows at the end of a recording, with its reason", "[cuda]") {
  if (!has_gpu()) return;
  const Stream outside(kGpu);
  // Freeing makes the stream wait for one that is not recorded: destructors have nobody to tell.
  const auto error = error_of([&] {
    WorkGraph(kGpu, [&] {
      const Tensor taken = Tensor::empty({10}, {.device = kGpu});
      taken.storage()->record_stream(outside);
    });
  });
  CHECK_THAT(error, ContainsText("cudaErrorStreamCaptureInvalidated") && ContainsText("cudaStreamWaitEvent at") &&
                        ContainsText("allocator_cuda.cpp"));
}

TEST_CASE("a recording that a graph's tensors outlive keeps their memory for them", "[cuda]") {
  if (!has_gpu()) return;
  Tensor kept;
  CHECK_THROWS_AS(WorkGraph(kGpu, [&] { kept = on_gpu({1000}); }), Error);
  const Tensor next = on_gpu({1000});  // not at the same place, so that freeing the one leaves the other
  CHECK(next.raw_data() != kept.raw_data());
  const WorkGraph graph(kGpu, [&] {  // what is left of a recording is nothing that another one frees
    kept = Tensor();
    next.fill(2.0);
  });
  graph.launch();
  CHECK(next.to_vector<float>() == std::vector<float>(1000, 2.0F));
}

TEST_CASE("memory that is overwritten after a recording shows in what its launches compute", "[cuda]") {
  if (!has_gpu()) return;
  const Tensor from = Tensor::full({1000}, 1.0, {.device = kGpu});
  const Tensor to = on_gpu({1000});
  const WorkGraph graph(kGpu, [&] { to.copy_from_async(from); });
  graph.launch();
  simulator::overwrite_memory(Out(from).raw_data(), 4000, 0x3f);
  graph.launch();
  std::vector<float> seen;
  try {
    seen = to.to_vector<float>();
  } catch (const simulator::Fault&) {  // in the checked build: nobody has written that
  }
  CHECK(seen != std::vector<float>(1000, 1.0F));
}

TEST_CASE("graphs end before their launches do", "[cuda]") {
  if (!has_gpu()) return;
  const RestoreSettings restore;
  simulator::settings().streams = simulator::Streams::deferred;
  const Steps steps;
  steps.from.copy_from(numbers({37, 65}, 5));
  {
    const WorkGraph graph(kGpu, steps);
    graph.launch();
  }
  CHECK(steps.to.narrow(0, 0, 1).narrow(1, 2, 1).item() == 5.0 + 2 * 65);
}
