// Evaluations that a CUDA graph does not record, or not at once: they are errors, or operations with the same scores.
#include "tandem/autograd/functions.h"
#include "tandem/autograd/grad_mode.h"
#include "tandem/data/loader.h"
#include "tandem/data/synthetic.h"
#include "tandem/layers/layers.h"
#include "tandem/layers/mode_scope.h"
#include "tandem/layers/random_state.h"
#include "tandem/train/evaluation_graph.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"
#include "tests/train/evaluated_net.h"
#include "tests/train/graph_run.h"

#include <stdexcept>

using namespace tandem;
using namespace tandem::test;

TEST_CASE("what a forward throws while it is recorded reaches the program, and later evaluations are right",
          "[cuda][evaluation]") {
  if (!has_gpu()) return;
  EvaluatedNet net;
  const auto loader = net.loader(1);
  const Scores expected = net.eager(*loader);
  EvaluationGraph graph(net.model, Scoring(), CudaGraph::on);
  net.probe->function = [](const Tensor& x) {
    if (WorkGraph::is_recording()) throw std::runtime_error("not like this");
    return x;
  };
  CHECK_THROWS_WITH(train::evaluate(graph, *loader, net.group), "not like this");
  net.probe->function = [](const Tensor& x) { return x; };
  for (int time = 0; time < 2; ++time) CHECK(are_same(train::evaluate(graph, *loader, net.group), expected));
  CHECK(graph.launches() == 2 * EvaluatedNet::kFull);  // the first ones were eager before the exception
}

TEST_CASE("a forward that cannot be recorded is an error, or eager with the same scores", "[cuda][evaluation]") {
  if (!has_gpu()) return;
  EvaluatedNet net;
  const auto loader = net.loader(1);
  net.probe->function = [](const Tensor& x) { return autograd::scale(x, autograd::sum(x).item() > 1e30 ? 2.0 : 1.0); };
  const std::string reason = "a copy from cuda:0 to cpu cannot be recorded";
  const Scores expected = net.eager(*loader);
  {
    const Notices notices;
    EvaluationGraph graph(net.model, Scoring(), CudaGraph::automatic);
    for (int time = 0; time < 2; ++time) CHECK(are_same(train::evaluate(graph, *loader, net.group), expected));
    CHECK(graph.launches() == 0);
    REQUIRE(notices.lines.size() == 2);  // told once for each text
    CHECK_THAT(notices.lines[0], ContainsText("CUDA graph: the evaluation is recorded anew: "));
    CHECK_THAT(notices.lines[0], ContainsText(reason));
    CHECK_THAT(notices.lines[1], ContainsText("CUDA graph: off from here on, the evaluation cannot be recorded: "));
  }
  EvaluationGraph graph(net.model, Scoring(), CudaGraph::on);
  const std::string error = error_of([&] {
    for (int time = 0; time < 2; ++time) train::evaluate(graph, *loader, net.group);
  });
  CHECK_THAT(error, ContainsText("CUDA graph: the evaluation cannot be recorded: "));
  CHECK_THAT(error, ContainsText(reason));
  for (int time = 0; time < 2; ++time) CHECK(error_of([&] { train::evaluate(graph, *loader, net.group); }) == error);
}

TEST_CASE("a model that draws random numbers is evaluated by operations, which draw what they draw without a graph",
          "[cuda][evaluation]") {
  if (!has_gpu()) return;
  EvaluatedNet net;
  const auto loader = net.loader(1);
  const auto random = std::make_shared<layers::RandomState>(3);
  layers::Dropout dropout(0.5);
  dropout.set_random_state(random);
  bool draws = true;
  net.probe->function = [&](const Tensor& x) {
    dropout.train(draws);
    return dropout(x);
  };
  const std::string reason = "the model draws random numbers, and a launch would draw the same for each batch";
  random->set_step(1);
  const Scores expected = net.eager(*loader);
  SECTION("from the first batch on") {
    const Notices notices;
    EvaluationGraph graph(net.model, Scoring(), CudaGraph::automatic);
    for (int time = 0; time < 3; ++time) {
      random->set_step(1);
      CHECK(are_same(train::evaluate(graph, *loader, net.group), expected));
    }
    CHECK(graph.launches() == 0);
    CHECK(notices.lines ==
          std::vector<std::string>{"CUDA graph: off from here on, the evaluation cannot be recorded: " + reason});
  }
  SECTION("an error") {
    EvaluationGraph graph(net.model, Scoring(), CudaGraph::on);
    CHECK_THAT(error_of([&] { train::evaluate(graph, *loader, net.group); }),
               ContainsText("CUDA graph: the evaluation cannot be recorded: " + reason));
  }
  SECTION("from the recording on") {
    EvaluationGraph graph(net.model, Scoring(), CudaGraph::on);
    const Notices notices;
    int batches = 0;
    dropout.train(draws = false);
    net.probe->function = [&](const Tensor& x) {
      if (++batches > 2) random->next_key(0);
      return x;
    };
    const autograd::NoGrad no_grad;
    const layers::ModeScope evaluating(net.model, false);
    graph.start();
    loader->start(0);
    for (int i = 0; i < 2; ++i) graph.add(*loader->next());
    CHECK_THAT(error_of([&] { graph.add(*loader->next()); }), ContainsText(reason));
    CHECK(graph.launches() == 0);
  }
}

TEST_CASE("evaluations that cannot be graphs are refused with CudaGraph::on, and told with automatic",
          "[cuda][evaluation]") {
  if (!has_gpu()) return;
  EvaluatedNet net, here(autograd::Precision::fp32, Device{});
  const Scoring with_metric({}, {{"none", [](const Tensor&, const Tensor&) { return 0.0; }}});
  CHECK_THAT(error_of([&] { EvaluationGraph(here.model, Scoring(), CudaGraph::on); }),
             ContainsText("CUDA graph: the evaluation cannot be recorded: the model is on the CPU"));
  CHECK_THAT(error_of([&] { EvaluationGraph(net.model, with_metric, CudaGraph::on); }),
             ContainsText("metrics of the program's own are computed by the host"));
  const auto images = std::make_shared<const data::ImageDataset>(
      data::make_synthetic({.count = EvaluatedNet::kImages, .channels = 3, .side = EvaluatedNet::kSide, .seed = 1}));
  data::Loader canonical(images,
                         {.global_batch_size = EvaluatedNet::kBatch, .share = {.micro_batches = 2}, .device = kGpu});
  EvaluationGraph on(net.model, Scoring(), CudaGraph::on);
  for (int time = 0; time < 2; ++time)
    CHECK_THAT(error_of([&] { train::evaluate(on, canonical, net.group); }),
               ContainsText("micro-batches of a canonical mode are scored one by one"));
  const Notices notices;
  const auto loader = net.loader(1);
  EvaluationGraph automatic(net.model, with_metric, CudaGraph::automatic), off(net.model, Scoring(), CudaGraph::off),
      micro(net.model, Scoring(), CudaGraph::automatic);
  CHECK(are_same(train::evaluate(automatic, *loader, net.group), net.eager(*loader)));
  CHECK(train::evaluate(automatic, *loader, net.group).sums == std::vector<double>{0.0});
  CHECK(are_same(train::evaluate(off, *loader, net.group), net.eager(*loader)));
  CHECK(are_same(train::evaluate(micro, canonical, net.group), net.eager(canonical)));
  CHECK(automatic.launches() + off.launches() + micro.launches() == 0);
  CHECK(notices.lines.size() == 2);
}

TEST_CASE("modules with hooks are called for each batch", "[cuda][evaluation]") {
  if (!has_gpu()) return;
  EvaluatedNet net;
  const auto loader = net.loader(1);
  EvaluationGraph graph(net.model, Scoring(), CudaGraph::on);
  const Scores expected = net.eager(*loader);
  train::evaluate(graph, *loader, net.group);
  int calls = 0;
  auto handle = net.model.register_forward_hook([&](layers::Module&, const Tensor&, const Tensor&) { ++calls; });
  CHECK(are_same(train::evaluate(graph, *loader, net.group), expected));
  CHECK(calls == EvaluatedNet::kFull + 1);
  CHECK(graph.launches() == EvaluatedNet::kFull - 2);
  handle.remove();
  CHECK(are_same(train::evaluate(graph, *loader, net.group), expected));
  CHECK(graph.launches() == 2 * EvaluatedNet::kFull - 2);
}
