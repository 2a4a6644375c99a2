// What only the simulator sees of recorded steps of two ranks: the order between their streams, edge by edge, and how
// often the host waits.
#include "tandem/autograd/functions.h"
#include "tandem/comm/ddp/distributed_data_parallel.h"
#include "tandem/core/work_graph.h"
#include "tandem/data/batch.h"
#include "tandem/layers/random_state.h"
#include "tandem/simulator/fault.h"
#include "tandem/simulator/graph.h"
#include "tandem/simulator/runtime.h"
#include "tandem/simulator/settings.h"
#include "tandem/simulator/shadow.h"
#include "tandem/train/progress_format.h"
#include "tandem/train/recorded_work.h"
#include "tests/comm/mpi/mpi_test.h"
#include "tests/comm/mpi/nccl_group.h"
#include "tests/simulator/restore_settings.h"
#include "tests/support/catch.h"
#include "tests/support/cuda_device.h"
#include "tests/train/graph_run.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

using namespace tandem;
using namespace tandem::test;

namespace {

using Nodes = std::vector<simulator::GraphNode>;

/// A node that another one waits for, on another stream.
struct Edge {
  std::size_t before, behind;
};

/// Those that nothing else stands for: neither the order of a stream nor other edges.
std::vector<Edge> needed_edges(const Nodes& nodes) {
  std::vector<std::vector<bool>> is_before(nodes.size(), std::vector<bool>(nodes.size(), false));
  std::vector<std::vector<std::size_t>> awaited(nodes.size());  // directly
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    awaited[i] = nodes[i].dependencies;
    for (std::size_t earlier = i; earlier-- > 0;) {
      if (nodes[earlier].stream != nodes[i].stream) continue;
      awaited[i].push_back(earlier);
      break;
    }
    for (const std::size_t direct : awaited[i]) {
      is_before[i][direct] = true;
      for (std::size_t k = 0; k < i; ++k)
        if (is_before[direct][k]) is_before[i][k] = true;
    }
  }
  std::vector<Edge> edges;
  for (std::size_t i = 0; i < nodes.size(); ++i)
    for (const std::size_t before : nodes[i].dependencies) {
      if (nodes[before].stream == nodes[i].stream) continue;
      const bool is_implied = std::ranges::any_of(awaited[i], [&, &at = i](std::size_t direct) {
        return is_before[direct][before] || (direct == before && nodes[direct].stream == nodes[at].stream);
      });
      if (!is_implied) edges.push_back({before, i});
    }
  return edges;
}

}  // namespace

TEST_CASE("each edge between the streams of a step of two ranks is needed", "[cuda]") {
  if (!simulator::checks_memory()) return;
  Device device;
  const auto group = make_nccl_group(device);
  if (!group) return;
  // Sums of halves are several operations, with memory between them.
  const auto precision = GENERATE(autograd::Precision::fp32, autograd::Precision::bf16);
  CAPTURE(precision);
  const Setup setup{.precision = precision, .device = device, .group = group.get()};
  Run run(setup, CudaGraph::off);
  run.trainer.reset();
  const auto random = std::make_shared<layers::RandomState>(1);
  run.model.set_random_state(random);
  comm::DistributedDataParallel replicas(*group, run.model.named_parameters(), run.model.named_buffers(),
                                         {.first_bucket_bytes = 0, .bucket_bytes = 1024});
  run.loader->start(0);
  const data::Batch batch = *run.loader->next();
  const auto step = [&] {
    run.optimizer->zero_grad();
    autograd::backward(autograd::softmax_cross_entropy(run.model(batch.images), batch.labels));
    replicas.finish();
    run.optimizer->step();
  };
  for (int i = 0; i < 3; ++i) {
    random->advance();
    step();
  }
  CHECK(replicas.bucket_count() > 1);
  random->step_on(device);
  const auto record = [&] {
    run.optimizer->prepare_recording();
    return WorkGraph(device, step);
  };
  const auto executable_of = [](const WorkGraph& graph) { return static_cast<cudaGraphExec_t>(graph.native()); };
  /// What the simulator says of a launch; "" where that is in order.
  const auto fault_of = [&](const WorkGraph& graph) -> std::string {
    std::string text;
    try {
      graph.launch();
      synchronize(device);
    } catch (const simulator::Fault& fault) {
      text = fault.what();
    }
    synchronize(device);
    return text;
  };
  const Nodes nodes = simulator::nodes_of(executable_of(record()));
  const std::vector<Edge> edges = needed_edges(nodes);
  // Of the layers' buckets, where these are full, and what comes behind all.
  CHECK(std::ranges::count_if(edges, [&](const Edge& edge) { return nodes[edge.before].stream == 0; }) > 1);
  CHECK(std::ranges::count_if(edges, [&](const Edge& edge) { return nodes[edge.behind].stream == 0; }) > 0);
  for (const Edge& edge : edges) {
    CAPTURE(edge.before, nodes[edge.before].name, edge.behind, nodes[edge.behind].name);
    CHECK(fault_of(record()) == "");
    const WorkGraph graph = record();
    simulator::drop_dependency(executable_of(graph), edge.behind, edge.before);
    CHECK_THAT(fault_of(graph), ContainsText("data race"));
  }
  CHECK(fault_of(record()) == "");
}

TEST_CASE("a step of two ranks waits for nothing where their GPUs keep up with them", "[cuda]") {
  Device device;
  const auto group = make_nccl_group(device);
  if (!group) return;
  const RestoreSettings restore;
  simulator::settings().streams = simulator::Streams::deferred;  // else the GPU is never behind
  constexpr std::int64_t kSteps = 12;
  const auto waits_so_far = [] {
    return simulator::runtime_counts().event_waits + simulator::runtime_counts().stream_waits;
  };
  for (const CudaGraph mode : {CudaGraph::off, CudaGraph::on}) {
    for (const bool scales : {false, true}) {
      CAPTURE(train::name_of(mode), scales);
      Setup setup{.device = device, .group = group.get(), .images = kSteps * Setup::kBatch};
      if (scales) setup.precision = autograd::Precision::fp16, setup.init_scale = 16.0;
      Run run(setup, mode, {.epochs = 1, .clip_norm = 1.0});
      std::vector<std::int64_t> before, behind;  // each step
      std::vector<bool> is_watched;              // its exchange
      std::shared_ptr<comm::Work> watched;
      trace_of(run, [&](const train::Progress&) {
        behind.push_back(waits_so_far());
        const auto before_that = std::exchange(watched, run.trainer->parts().replicas.exchange_under_way());
        is_watched.push_back(watched != nullptr && watched != before_that);
        synchronize(device);
        before.push_back(waits_so_far());
      });
      REQUIRE(behind.size() == kSteps);
      CHECK(run.trainer->graph_launches() == (mode == CudaGraph::on ? kSteps - 2 : 0));
      for (std::size_t step = 4; step < behind.size(); ++step) {
        CAPTURE(step);
        CHECK(behind[step] == before[step - 1]);
        CHECK(is_watched[step]);
      }
    }
  }
}
