// Recordings and launches that fail on the way: what the host has counted for them is taken back, and training goes on.
#include "tandem/autograd/functions.h"
#include "tandem/autograd/grad_mode.h"
#include "tandem/autograd/variable.h"
#include "tandem/core/allocator.h"
#include "tandem/data/deferred_batch.h"
#include "tandem/layers/mode_scope.h"
#include "tandem/simulator/settings.h"
#include "tandem/train/evaluation_graph.h"
#include "tandem/train/progress_format.h"
#include "tandem/train/state_copy.h"
#include "tandem/train/step_graph.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"
#include "tests/train/graph_run.h"

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

using namespace tandem;
using namespace tandem::test;

namespace {

/// The steps of a training, one after another.
struct Steps {
  Run run;
  std::shared_ptr<layers::RandomState> random = std::make_shared<layers::RandomState>(1);
  train::StepGraph graph;
  std::function<void()> before_step = [] {}, behind_step = [] {};  // parts of the work
  data::Batch batch;
  std::int64_t steps = 0;
  int passes = 1;  // over the batch, each a step of `random`

  Steps(const Setup& setup, CudaGraph mode)
      : run(setup, CudaGraph::off), graph(run.model, *run.optimizer, random, mode) {
    run.model.set_random_state(random);
    run.loader->start(0);
  }

  void work(const data::Batch& given) {
    run.scaler.abandon_step();
    run.optimizer->zero_grad();
    for (int pass = 0; pass < passes; ++pass) {
      if (pass > 0) random->advance();
      const Tensor loss = autograd::softmax_cross_entropy(run.model(given.images), given.labels);
      autograd::backward(loss, run.scaler.start_gradient(loss));
    }
    before_step();
    run.scaler.step(*run.optimizer);
    run.scaler.update();
    behind_step();
  }

  void begin() {
    batch = *run.loader->next();
    random->set_step(static_cast<std::uint32_t>(passes * steps));
    run.optimizer->set_lr_factor(1.0 / static_cast<double>(1 + steps));
    run.optimizer->begin_step(steps++);
  }
  /// Of the batch that was begun; returns whether it was a launch.
  bool end() {
    return graph.take(batch, [this](const data::Batch& given) { work(given); });
  }
  bool take() {
    begin();
    return end();
  }
  /// end() of a batch whose images cannot be made.
  void take_without_images() {
    const Tensor& images = batch.images;
    data::ImagesToMake none;
    none.shape = images.shape();
    none.options = {.dtype = images.dtype(), .layout = Layout::channels_last, .device = images.device()};
    none.make = [](const Out&) { fail("no images today"); };
    graph.take(data::DeferredBatch(batch, std::move(none)), Setup::kBatch,
               [this](const data::Batch& given) { work(given); });
  }

  Values state() const {
    Values values = values_of(run.model.state_dict());
    values.merge(values_of(run.optimizer->state_dict()));
    return values;
  }
};

/// No thread makes batches meanwhile, which would take memory or give some back.
Setup of_steps(Setup setup) {
  setup.images = 12 * Setup::kBatch;
  setup.loader_threads = 0;
  return setup;
}

const std::vector<Setup>& setups() {
  static const std::vector<Setup> all{
      of_steps({}), of_steps({.optimizer = "adamw"}),
      of_steps({.optimizer = "adamw", .precision = autograd::Precision::fp16, .init_scale = 8.0}),
      of_steps({.frozen_group = true, .freeze_step = 6})};
  return all;
}

}  // namespace

TEST_CASE("a step whose recording found no memory trains the groups that it would have been the last one of",
          "[cuda][trainer]") {
  if (!has_gpu()) return;
  for (const std::string optimizer : {"sgd", "adamw"}) {
    const Setup setup = of_steps({.optimizer = optimizer, .frozen_group = true, .freeze_step = 3});
    const Notices notices;
    Steps eager(setup, CudaGraph::off), graph(setup, CudaGraph::automatic);
    bool has_failed = false;
    graph.behind_step = [&] {
      if (WorkGraph::is_recording() && !std::exchange(has_failed, true)) simulator::fail_allocation(1, 2);
    };
    for (int step = 0; step < 6; ++step) {
      CAPTURE(optimizer, step);
      eager.take();
      CHECK(graph.take() == (step > 2));
      CHECK(has_failed == (step >= 2));
      CHECK(graph.state() == eager.state());
    }
    REQUIRE(notices.lines.size() == 1);
    CHECK_THAT(notices.lines[0], ContainsText("cudaGraphUpload") && ContainsText("cudaErrorMemoryAllocation"));
  }
}

TEST_CASE("a launch that finds no memory is no step, and can be taken again", "[cuda][trainer]") {
  if (!has_gpu()) return;
  for (const Setup& setup : setups()) {
    CAPTURE(setup.optimizer, setup.init_scale, setup.frozen_group);
    const Notices notices;
    Steps eager(setup, CudaGraph::off), graph(setup, CudaGraph::on);
    for (int step = 0; step < 9; ++step) {
      CAPTURE(step);
      eager.take();
      graph.begin();
      if (step == 5) {
        const Values before = graph.state();
        allocator_for(kGpu).release_cached();
        simulator::fail_allocation(1, 2);
        CHECK_THAT(error_of([&] { graph.end(); }), ContainsText("cudaGraphLaunch"));
        simulator::fail_allocation(0);
        CHECK(graph.state() == before);
        CHECK(autograd::requires_grad(graph.run.model.parameters().front()));
      }
      CHECK(graph.end() == (step >= 2 && !(setup.frozen_group && step == 6)));
      CHECK(graph.state() == eager.state());
    }
    CHECK(graph.graph.recordings() == (setup.frozen_group ? 2 : 1));
    CHECK(notices.lines.size() == (setup.frozen_group ? 1 : 0));
  }
}

TEST_CASE("a step of several passes draws what it would have drawn where its recording or launch has failed",
          "[cuda][trainer]") {
  if (!has_gpu()) return;
  for (const bool is_recording : {true, false}) {
    for (const int failing : {2, 3, 5}) {  // of launches: the first one, and later ones
      if (is_recording && failing > 2) continue;
      CAPTURE(is_recording, failing);
      Steps eager(of_steps({}), CudaGraph::off), graph(of_steps({}), CudaGraph::automatic);
      eager.passes = graph.passes = 2;
      bool has_failed = false;
      graph.behind_step = [&] {
        if (is_recording && WorkGraph::is_recording() && !std::exchange(has_failed, true))
          simulator::fail_allocation(1, 2);
      };
      for (int step = 0; step < 9; ++step) {
        CAPTURE(step);
        eager.take();
        graph.begin();
        if (step == failing && !is_recording) {
          CHECK_THAT(error_of([&] { graph.take_without_images(); }), ContainsText("no images today"));
          graph.graph.drop();  // the operations take the step
        }
        graph.end();
        CHECK(graph.state() == eager.state());
      }
      CHECK(has_failed == is_recording);
      CHECK(graph.graph.recordings() == (is_recording ? 1 : 2));
    }
  }
}

TEST_CASE("a batch whose images cannot be made is no step, of a recording and of a later launch", "[cuda][trainer]") {
  if (!has_gpu()) return;
  for (const Setup& setup : setups()) {
    for (const int failing : {2, 5}) {
      CAPTURE(setup.optimizer, setup.init_scale, setup.frozen_group, failing);
      Steps eager(setup, CudaGraph::off), graph(setup, CudaGraph::on);
      for (int step = 0; step < 9; ++step) {
        CAPTURE(step);
        eager.take();
        graph.begin();
        if (step == failing) {
          const Values before = graph.state();
          CHECK_THAT(error_of([&] { graph.take_without_images(); }), ContainsText("no images today"));
          CHECK(graph.state() == before);
        }
        CHECK(graph.end() == (step >= 2 && !(setup.frozen_group && step == 6)));
        CHECK(graph.state() == eager.state());
      }
      CHECK(graph.graph.recordings() == (setup.frozen_group ? 2 : 1));
    }
  }
}

TEST_CASE("a launch that cannot be prepared for want of pinned memory is an error, and nothing is recorded anew",
          "[cuda][trainer]") {
  if (!has_gpu()) return;
  for (const Setup& setup : setups()) {
    CAPTURE(setup.optimizer, setup.init_scale, setup.frozen_group);
    const Notices notices;
    Steps eager(setup, CudaGraph::off), graph(setup, CudaGraph::on);
    for (int step = 0; step < 6; ++step) {
      CAPTURE(step);
      eager.take();
      graph.begin();
      if (step == 4) {
        pinned_allocator().release_cached();
        simulator::fail_host_allocation(1, 1000);
        CHECK_THAT(error_of([&] { graph.end(); }), ContainsText("out of pinned CPU memory"));
        simulator::fail_host_allocation(0);
      }
      CHECK(graph.end() == (step >= 2));
      CHECK(graph.state() == eager.state());
    }
    CHECK(graph.graph.recordings() == 1);
    CHECK(notices.lines.empty());
  }
}

TEST_CASE("the answer of a launch is waited for where there is no pinned memory to bring it", "[cuda][trainer]") {
  if (!has_gpu()) return;
  // The scale grows until a step overflows.
  Setup setup = of_steps({.optimizer = "adamw", .precision = autograd::Precision::fp16, .init_scale = 0x1p14});
  Steps eager(setup, CudaGraph::off), graph(setup, CudaGraph::on);
  bool is_short = false;
  graph.before_step = [&] {
    WorkGraph::with_each_launch([&] {
      if (!is_short) return;
      pinned_allocator().release_cached();
      simulator::fail_host_allocation(1, 1000);
    });
  };
  graph.behind_step = [&] { WorkGraph::with_each_launch([] { simulator::fail_host_allocation(0); }); };
  for (int step = 0; step < 12; ++step) {
    CAPTURE(step);
    is_short = step % 2 == 1 && graph.graph.is_recorded();
    eager.take();
    graph.take();
    CHECK(graph.run.scaler.scale() == eager.run.scaler.scale());
    CHECK(graph.state() == eager.state());
  }
  CHECK(graph.graph.launches() >= 6);
}

TEST_CASE("a run that a launch without memory has ended goes on from an earlier state in the same trainer",
          "[cuda][trainer]") {
  if (!has_gpu()) return;
  const Setup setup{
      .optimizer = "adamw", .precision = autograd::Precision::fp16, .init_scale = 0x1p14, .loader_threads = 0};
  Run eager(setup, CudaGraph::off);
  const Trace expected = trace_of(eager);
  std::string error = "no error";
  // Other memory is asked for as well, and has that at its third try.
  for (int tries = 1; tries <= 20 && error == "no error"; ++tries) {
    Run run(setup, CudaGraph::on);
    NamedTensors state;
    train::TrainObserver observer;
    observer.progress = [&](const train::Progress&) {
      if (run.trainer->steps_done() == 4) state = train::clones_of(run.trainer->state_dict());
      if (run.trainer->steps_done() != 7) return;
      allocator_for(kGpu).release_cached();
      simulator::fail_allocation(tries, 2);
    };
    error = error_of([&] { run.trainer->run(observer); });
    simulator::fail_allocation(0);
    if (error == "no error") continue;
    run.trainer->load_state_dict(state);
    run.trainer->run({});
    CHECK(values_of(run.trainer->state_dict()) == expected.state);
  }
  CHECK_THAT(error, ContainsText("cudaGraphLaunch"));
}

TEST_CASE("an evaluated batch whose launch finds no memory is an error, and the next evaluation is whole",
          "[cuda][evaluation]") {
  if (!has_gpu()) return;
  Run run(of_steps({}), CudaGraph::off);
  std::vector<data::Batch> batches;
  run.test->start(0);
  while (const auto batch = run.test->next()) batches.push_back(*batch);
  const autograd::NoGrad no_grad;
  const layers::ModeScope evaluating(run.model, false);
  train::EvaluationGraph graph(run.model, train::Scoring(), CudaGraph::on);
  const auto evaluate = [&](std::size_t count) {
    graph.start();
    for (std::size_t i = 0; i < count; ++i) graph.add(batches[i]);
    return graph.scores().metrics;
  };
  const train::Metrics expected = evaluate(batches.size());
  evaluate(5);
  allocator_for(kGpu).release_cached();
  simulator::fail_allocation(1, 2);
  CHECK_THAT(error_of([&] { graph.add(batches[5]); }), ContainsText("cudaGraphLaunch"));
  simulator::fail_allocation(0);
  const train::Metrics again = evaluate(batches.size());
  CHECK(again.loss_sum == expected.loss_sum);
  CHECK(again.correct == expected.correct);
  CHECK(again.count == expected.count);
  CHECK(graph.recordings() == 1);
}

namespace {

/// Work of a rank whose first recording another rank cannot follow.
class Disagreeing final : public train::RecordedWork {
 public:
  explicit Disagreeing(layers::Module& model) : RecordedWork(model, CudaGraph::automatic, "the test") {}

  bool take(const data::Batch& batch, const std::function<void(const data::Batch&)>& work) {
    return take_batch(data::DeferredBatch(batch), batch.count(), work);
  }

 private:
  std::string agree(const std::string& mine) const override { return asked_++ == 0 ? "on rank 1, no" : mine; }

  mutable int asked_ = 0;
};

}  // namespace

TEST_CASE("a recording that another rank has no like of is none", "[cuda][trainer]") {
  if (!has_gpu()) return;
  const Notices notices;
  Steps steps(of_steps({}), CudaGraph::off);
  Disagreeing disagreeing(steps.run.model);
  const Tensor sum = Tensor::zeros({}, {.device = kGpu});
  steps.begin();
  std::vector<bool> launched;
  std::vector<std::int64_t> recordings;
  for (int i = 0; i < 5; ++i) {
    launched.push_back(disagreeing.take(steps.batch, [&](const data::Batch&) { sum.fill(1.0); }));
    recordings.push_back(disagreeing.recordings());
  }
  CHECK(launched == std::vector<bool>{false, false, false, true, true});
  CHECK(recordings == std::vector<std::int64_t>{0, 0, 0, 1, 1});
  CHECK(notices.lines.size() == 1);
}
