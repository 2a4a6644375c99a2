// Outputs that evaluations by CUDA graphs keep, and what a trainer makes of them.
#include "tandem/autograd/functions.h"
#include "tandem/data/loader.h"
#include "tandem/data/synthetic.h"
#include "tandem/layers/layers.h"
#include "tandem/train/evaluation_details.h"
#include "tandem/train/evaluation_graph.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"
#include "tests/train/evaluated_net.h"
#include "tests/train/graph_run.h"

using namespace tandem;
using namespace tandem::test;

TEST_CASE("a trainer's evaluations by graphs have the figures of those without, also of averages and in a rehearsal",
          "[cuda][evaluation][trainer]") {
  if (!has_gpu()) return;
  const Setup setup = GENERATE(Setup{}, Setup{.precision = autograd::Precision::bf16, .resident = true},
                               Setup{.precision = autograd::Precision::fp16, .init_scale = 16.0});
  train::TrainerOptions options{.epochs = 3, .test_time_augmentation = TestTimeAugmentation::six};
  SECTION("plain") {}
  SECTION("averages, some images") {
    options.ema = 0.9;
    options.test_time_share = 0.4;
  }
  SECTION("slow weights") { options.lookahead = {.every = 2}; }
  Run eager(setup, CudaGraph::off, options), graph(setup, CudaGraph::on, options),
      rehearsed(setup, CudaGraph::on, options);
  const Trace expected = trace_of(eager);
  CHECK(trace_of(graph) == expected);
  CHECK(eager.trainer->evaluation_launches() == 0);
  CHECK(graph.trainer->evaluation_launches() == 3 * Setup::kFullSteps - 2);
  rehearsed.trainer->rehearse(3);
  CHECK(rehearsed.trainer->evaluation_launches() == 1);
  CHECK(trace_of(rehearsed) == expected);
  CHECK(rehearsed.trainer->evaluation_launches() == 1 + 3 * Setup::kFullSteps);
}

TEST_CASE("a trainer whose steps cannot be graphs evaluates by them, and one whose evaluations cannot trains by them",
          "[cuda][evaluation][trainer]") {
  if (!has_gpu()) return;
  const Notices notices;
  Run accumulated({}, CudaGraph::automatic, {.epochs = 2, .accumulation = 2});
  accumulated.trainer->run({});
  CHECK(accumulated.trainer->graph_launches() == 0);
  CHECK(accumulated.trainer->evaluation_launches() == 2 * Setup::kFullSteps - 2);
  CHECK(notices.lines == std::vector<std::string>{"CUDA graph: off for steps: a step is several micro-batches"});
  const train::TrainerOptions options{.epochs = 2, .dead_relus = true};
  Run eager({}, CudaGraph::off, options), graph({}, CudaGraph::on, options);
  CHECK(trace_of(graph) == trace_of(eager));
  CHECK(graph.trainer->graph_launches() == 2 * Setup::kFullSteps - 2);
  CHECK(graph.trainer->evaluation_launches() == 0);
  REQUIRE(notices.lines.size() == 2);
  CHECK(notices.lines[1] == "CUDA graph: off for evaluations: the outputs of each ReLU are looked at");
}

TEST_CASE("details of evaluations by graphs are those without", "[cuda][evaluation][trainer]") {
  if (!has_gpu()) return;
  const Setup setup = GENERATE(Setup{}, Setup{.precision = autograd::Precision::bf16});
  const train::TrainerOptions options{
      .epochs = 3, .test_time_augmentation = TestTimeAugmentation::flip, .test_time_share = 0.5, .detailed = true};
  Run eager(setup, CudaGraph::off, options), graph(setup, CudaGraph::on, options);
  CHECK(trace_of(graph) == trace_of(eager));
  CHECK(graph.trainer->evaluation_launches() == 3 * Setup::kFullSteps - 2);
  const train::EvaluationReport expected = eager.trainer->evaluation_report(),
                                found = graph.trainer->evaluation_report();
  CHECK(found.loss == expected.loss);
  CHECK(found.images == setup.images);
  CHECK(found.confusion == expected.confusion);
  CHECK(found.ece == expected.ece);
  REQUIRE(found.worst.size() == expected.worst.size());
  for (std::size_t i = 0; i < found.worst.size(); ++i) {
    CHECK(found.worst[i].index == expected.worst[i].index);
    CHECK(found.worst[i].loss == expected.worst[i].loss);
  }
  EvaluatedNet net;
  EvaluationGraph keeps_none(net.model, Scoring(), CudaGraph::on);
  train::EvaluationDetails details;
  CHECK_THAT(error_of([&] { train::evaluate(keeps_none, *net.loader(1), net.group, &details); }),
             ContainsText("details are made of outputs, and this graph does not keep them"));
}

TEST_CASE("outputs are kept also where the first evaluation was too short for a graph", "[cuda][evaluation]") {
  if (!has_gpu()) return;
  EvaluatedNet net;
  const auto halves = net.loader(1, false, 16);  // two batches and a small one
  EvaluationGraph graph(net.model, Scoring(), CudaGraph::on, true);
  for (int time = 0; time < 3; ++time) {
    train::EvaluationDetails found, expected;
    CHECK(are_same(train::evaluate(graph, *halves, net.group, &found),
                   train::evaluate(net.model, *halves, net.group, Scoring(), &expected)));
    CHECK(found.report(net.group).confusion == expected.report(net.group).confusion);
    CHECK(graph.launches() == 2 * time);
  }
}

TEST_CASE("outputs are kept also where they have other dtypes or sizes than those before", "[cuda][evaluation]") {
  if (!has_gpu()) return;
  EvaluatedNet net;
  const Notices notices;
  const auto agrees = [&](EvaluationGraph& graph, data::Loader& loader) {
    train::EvaluationDetails found, expected;
    return are_same(train::evaluate(graph, loader, net.group, &found),
                    train::evaluate(net.model, loader, net.group, Scoring(), &expected)) &&
           found.report(net.group).confusion == expected.report(net.group).confusion;
  };
  SECTION("another precision") {
    const auto loader = net.loader(1);
    EvaluationGraph graph(net.model, Scoring(), CudaGraph::on, true);
    CHECK(agrees(graph, *loader));
    net.model.set_precision(autograd::Precision::bf16);
    for (int time = 0; time < 2; ++time) CHECK(agrees(graph, *loader));
    CHECK(graph.launches() == 3 * EvaluatedNet::kFull - 3);
    CHECK(notices.lines.size() == 1);
  }
  SECTION("other images, of which there is no graph") {
    layers::Initializer initializer(5);
    layers::Sequential convolution;  // gives as many rows and columns as it is given
    convolution.add<layers::Conv2d>({.in = 3, .out = 4, .kernel = {3, 3}, .padding = {1, 1}}, initializer);
    convolution.to(kGpu);
    const Scoring squares([](const Tensor& output, const Tensor&) { return autograd::mean(output * output); });
    EvaluationGraph graph(convolution, squares, CudaGraph::on, true);
    for (const std::int64_t side : {8, 12, 8, 8}) {
      const auto images = std::make_shared<const data::ImageDataset>(
          data::make_synthetic({.count = 2 * EvaluatedNet::kBatch, .channels = 3, .side = side, .seed = 1}));
      data::Loader loader(images, {.global_batch_size = EvaluatedNet::kBatch, .device = kGpu});
      CHECK(are_same(train::evaluate(graph, loader, net.group),
                     train::evaluate(convolution, loader, net.group, squares)));
    }
    CHECK(graph.launches() == 4);
    CHECK(notices.lines.empty());
  }
}

TEST_CASE("a trainer that is stopped in an evaluation goes on with the bits of one without graphs",
          "[cuda][evaluation][trainer]") {
  if (!has_gpu()) return;
  std::vector<Trace> traces;
  for (const CudaGraph mode : {CudaGraph::off, CudaGraph::on}) {
    Run run({}, mode);
    int asked = 0;
    train::TrainObserver observer;
    // Behind five steps of each epoch, five batches are evaluated.
    observer.stop = [&] { return ++asked == 18; };
    const train::EpochRecord stopped = run.trainer->run(observer);
    CHECK(stopped.stopped);
    traces.push_back(trace_of(run));
  }
  CHECK(traces[0] == traces[1]);
}
