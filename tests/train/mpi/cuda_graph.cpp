// Trainings of two ranks whose steps are launches of CUDA graphs, the exchange of gradients a part of them. Over NCCL
// where each rank has a GPU of its own, and on simulated GPUs over a communicator of the host's.
#include "tandem/autograd/variable.h"
#include "tandem/layers/module.h"
#include "tandem/train/step_graph.h"
#include "tests/comm/mpi/mpi_test.h"
#include "tests/comm/mpi/nccl_group.h"
#include "tests/support/catch.h"
#include "tests/support/cuda_device.h"
#include "tests/support/error_of.h"
#include "tests/train/graph_run.h"

using namespace tandem;
using namespace tandem::test;

namespace {

/// Refuses to be recorded, on one rank.
class Shy final : public layers::Module {
 public:
  explicit Shy(bool is_shy, bool also_training = true) : is_shy_(is_shy), also_training_(also_training) {}
  Tensor forward(const Tensor& input) override {
    const bool refuses = is_shy_ && (also_training_ || !training());
    require(!refuses || !WorkGraph::is_recording(), "it is shy");
    return input;
  }

 private:
  bool is_shy_, also_training_;
};

}  // namespace

TEST_CASE("two ranks train by graphs to the bits that they have without", "[cuda]") {
  Device device;
  const auto group = make_nccl_group(device);
  if (!group) return;
  // The last batch of 5 images is 3 and 2 of them.
  Setup setup{.device = device, .group = group.get(), .images = Setup::kFullSteps * Setup::kBatch + 5};
  train::TrainerOptions options{
      .epochs = 4, .label_smoothing = 0.1, .l1 = 1e-4, .check_replicas = true, .log_every = 2};
  std::int64_t eager_steps = 2, evaluated_batches = Setup::kFullSteps;
  SECTION("SGD in f32, clipped, with an average") {
    options.ema = 0.9;
    options.clip_norm = 0.5;
  }
  SECTION("AdamW in bf16") {
    setup.optimizer = "adamw";
    setup.precision = autograd::Precision::bf16;
  }
  SECTION("bf16 alone, so that the first sum is one of halves") {
    setup.precision = autograd::Precision::bf16;
    setup.batch_norm = false;
  }
  SECTION("Muon") { setup.optimizer = "muon"; }
  SECTION("a last batch that leaves a rank without images") { setup.images = Setup::kFullSteps * Setup::kBatch + 1; }
  SECTION("a last batch that is as large as the others on one rank") {
    setup.images = Setup::kFullSteps * Setup::kBatch + 7;
    if (group->rank() == 0) ++evaluated_batches;  // of evaluations each rank launches its own
  }
  SECTION("a loss scale, with steps that overflow") {
    setup.precision = autograd::Precision::fp16;
    setup.init_scale = 0x1p22;
    options.l1 = 0.0;
    options.epochs = 6;
    options.lookahead = {.every = 2};
    eager_steps = -1;  // as many as it takes
  }
  SECTION("a group that is frozen under way") {
    setup.frozen_group = true;
    eager_steps = 3;
  }
  Run eager(setup, CudaGraph::off, options);
  const Trace expected = trace_of(eager);
  eager.trainer.reset();
  Run graph(setup, CudaGraph::on, options);
  CHECK(trace_of(graph) == expected);
  {  // a sum of two numbers has one order
    const auto native = comm::make_process_group("native", environment(), device);
    setup.group = native.get();
    Run staged(setup, CudaGraph::off, options);
    CHECK(trace_of(staged) == expected);
  }
  const std::int64_t launches = graph.trainer->graph_launches();
  if (eager_steps >= 0) CHECK(launches == options.epochs * Setup::kFullSteps - eager_steps);
  CHECK(launches >= 2 * Setup::kFullSteps);
  CHECK(graph.trainer->evaluation_launches() == options.epochs * evaluated_batches - 2);
  CHECK(graph.scaler.skipped_steps() == eager.scaler.skipped_steps());
}

TEST_CASE("a step is recorded right behind one that left a rank without images", "[cuda]") {
  Device device;
  const auto group = make_nccl_group(device);
  if (!group) return;
  const Setup setup{.device = device, .group = group.get(), .images = Setup::kBatch + 1};
  Run eager(setup, CudaGraph::off, {.epochs = 6});
  const Trace expected = trace_of(eager);
  eager.trainer.reset();
  const Notices notices;
  Run graph(setup, CudaGraph::on, {.epochs = 6});
  CHECK(trace_of(graph) == expected);
  CHECK(graph.trainer->graph_launches() == 4);
  CHECK(notices.lines.empty());
}

TEST_CASE("where one rank cannot record a step, no rank launches one", "[cuda]") {
  Device device;
  const auto group = make_nccl_group(device);
  if (!group) return;
  const Setup setup{.device = device, .group = group.get()};
  Run eager(setup, CudaGraph::off);
  const Trace expected = trace_of(eager);
  eager.trainer.reset();
  const Notices notices;
  for (const CudaGraph mode : {CudaGraph::automatic, CudaGraph::on}) {
    Run run(setup, mode);
    run.model.add<Shy>(group->rank() == 1);
    if (mode == CudaGraph::on) {
      CHECK_THAT(error_of([&] { run.trainer->run({}); }),
                 ContainsText("CUDA graph: the step cannot be recorded: on rank 1, layer 7: it is shy"));
      continue;
    }
    CHECK(trace_of(run).figures == expected.figures);
    CHECK(run.trainer->graph_launches() == 0);
    // Of evaluations each rank records its own: two lines more of the one that cannot.
    const bool is_shy = group->rank() == 1;
    CHECK(run.trainer->evaluation_launches() == (is_shy ? 0 : 3 * Setup::kFullSteps - 2));
    REQUIRE(notices.lines.size() == (is_shy ? 4 : 2));
    CHECK_THAT(notices.lines[is_shy ? 2 : 1],
               ContainsText("off from here on, the step cannot be recorded: on rank 1, layer 7: it is shy"));
    if (is_shy)
      CHECK_THAT(notices.lines[3], ContainsText("off from here on, the evaluation cannot be recorded: layer 7: it is"));
  }
}

TEST_CASE("a recording that one rank gives up within its backward pass leaves the exchange as it was", "[cuda]") {
  Device device;
  const auto group = make_nccl_group(device);
  if (!group) return;
  const Setup setup{.device = device, .group = group.get()};
  Run eager(setup, CudaGraph::off);
  const Trace expected = trace_of(eager);
  eager.trainer.reset();
  Run run(setup, CudaGraph::automatic);
  int refusals = 1;
  const bool refuses = group->rank() == 1;
  // Of the first layer: those of the others are on their way.
  autograd::on_gradient_ready(run.model.parameters().front(), [&](const Tensor& gradient) {
    require(!refuses || !WorkGraph::is_recording() || --refusals < 0, "not today");
    return gradient;
  });
  CHECK(trace_of(run) == expected);
  CHECK(run.trainer->graph_launches() == 3 * Setup::kFullSteps - 3);
}

TEST_CASE("an evaluation that one rank alone cannot record ends the run on all with --cuda-graph on", "[cuda]") {
  Device device;
  const auto group = make_nccl_group(device);
  if (!group) return;
  const Setup setup{.device = device, .group = group.get()};
  Run run(setup, CudaGraph::on);
  run.model.add<Shy>(group->rank() == 1, false);
  CHECK_THAT(error_of([&] { run.trainer->run({}); }),
             ContainsText("rank 1: CUDA graph: the evaluation cannot be recorded: layer 7: it is shy"));
  CHECK(run.trainer->graph_launches() == 2 * Setup::kFullSteps - 2);  // it tries three times
  CHECK_THAT(error_of([&] { Run(setup, CudaGraph::on).trainer->run({}); }), ContainsText("no error"));
}

TEST_CASE("ranks whose collectives the host begins take no graphs, and are told why", "[cuda]") {
  if (!has_gpu()) return;
  const auto group = comm::make_process_group("native", environment(), kGpu);
  const Setup setup{.device = kGpu, .group = group.get()};
  CHECK_THAT(error_of([&] { Run(setup, CudaGraph::on); }),
             ContainsText("trainer: steps cannot be CUDA graphs: backend native begins collectives on the host"));
  const Notices notices;
  Run run(setup, CudaGraph::automatic, {.epochs = 1});
  run.trainer->run({});
  CHECK(run.trainer->graph_launches() == 0);
  CHECK(run.trainer->evaluation_launches() == Setup::kFullSteps - 2);
  CHECK(notices.lines ==
        std::vector<std::string>{"CUDA graph: off for steps: backend native begins collectives on the host"});
}
