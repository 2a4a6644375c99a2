// Evaluations whose batches are launches of a CUDA graph.
#include "tandem/autograd/functions.h"
#include "tandem/autograd/grad_mode.h"
#include "tandem/comm/backends/backend.h"
#include "tandem/data/synthetic.h"
#include "tandem/layers/layers.h"
#include "tandem/layers/mode_scope.h"
#include "tandem/layers/random_state.h"
#include "tandem/train/evaluation.h"
#include "tandem/train/evaluation_graph.h"
#include "tandem/train/running_scores.h"
#include "tandem/train/test_time_augmentation.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"
#include "tests/train/graph_run.h"

#include <stdexcept>

using namespace tandem;
using namespace tandem::test;
using train::EvaluationGraph;
using train::Scores;
using train::Scoring;
using train::TestTimeAugmentation;

namespace {

constexpr std::int64_t kBatch = 8, kSide = 8, kFull = 4, kImages = kFull * kBatch + 3;

/// What a network does in a test.
class Probe final : public layers::Module {
 public:
  std::function<Tensor(const Tensor&)> function = [](const Tensor& x) { return x; };

  Tensor forward(const Tensor& input) override { return function(input); }
};

/// A network with batch norm and a probe, and images for it.
struct Net {
  comm::ProcessGroup group{comm::make_self_backend()};
  layers::Sequential model;
  Probe* probe = nullptr;

  explicit Net(autograd::Precision precision = autograd::Precision::fp32, Device device = kGpu) {
    layers::Initializer initializer(5);
    model.add<layers::Conv2d>({.in = 3, .out = 8, .kernel = {3, 3}, .padding = {1, 1}, .relu = true}, initializer);
    model.add<layers::BatchNorm2d>({.channels = 8});
    model.add<layers::MaxPool2d>(2);
    model.add<layers::Flatten>();
    probe = &model.add<Probe>();
    model.add<layers::Linear>({.in = 8 * 4 * 4, .out = Setup::kClasses}, initializer);
    model.set_precision(precision);
    model.to(device);
    dtype_ = autograd::storage_dtype(precision);
  }

  std::unique_ptr<data::Loader> loader(std::uint64_t seed, bool resident = false, std::int64_t batch = kBatch) const {
    const auto images = std::make_shared<const data::ImageDataset>(
        data::make_synthetic({.count = kImages, .channels = 3, .side = kSide, .seed = seed}));
    return std::make_unique<data::Loader>(
        images, data::LoaderOptions{.global_batch_size = batch, .dtype = dtype_, .device = kGpu, .resident = resident});
  }

  /// Other weights and running statistics, where they are.
  void change(float by) const {
    for (const auto& [name, tensor] : model.state_dict()) {
      if (!is_floating(tensor.dtype())) continue;
      const autograd::NoGrad no_grad;
      tensor.copy_from(autograd::scale(tensor.detach(), 1.0 + static_cast<double>(by)));
    }
  }

  Scores eager(data::Loader& loader, const Scoring& scoring = Scoring()) {
    return train::evaluate(model, loader, group, scoring);
  }

 private:
  DType dtype_;
};

bool are_same(const Scores& a, const Scores& b) {
  return a.metrics.loss_sum == b.metrics.loss_sum && a.metrics.correct == b.metrics.correct &&
         a.metrics.count == b.metrics.count;
}

Scoring over(TestTimeAugmentation views, double share) { return Scoring({}, {}, 0.0, over_views(views, {}, share)); }

}  // namespace

TEST_CASE("evaluations by graphs have the scores of those without, for all views, precisions and weights",
          "[cuda][evaluation]") {
  if (!has_gpu()) return;
  struct Case {
    TestTimeAugmentation views;
    double share;
    autograd::Precision precision = autograd::Precision::fp32;
  };
  using enum TestTimeAugmentation;
  const Case of = GENERATE(Case{none, 1.0}, Case{flip, 1.0}, Case{six, 1.0}, Case{six_equal, 1.0}, Case{flip, 0.3},
                           Case{six_equal, 0.5}, Case{none, 1.0, autograd::Precision::bf16},
                           Case{six, 1.0, autograd::Precision::fp16}, Case{six, 0.5, autograd::Precision::bf16},
                           Case{flip, 0.7, autograd::Precision::fp16});
  CAPTURE(name_of(of.views), of.share, autograd::name_of(of.precision));
  Net net(of.precision);
  EvaluationGraph graph(net.model, over(of.views, of.share), CudaGraph::on);
  const auto first = net.loader(1), second = net.loader(2, true);
  std::int64_t launches = -2;
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (data::Loader* const loader : {first.get(), second.get()}) {
      const Scores expected = net.eager(*loader, over(of.views, of.share));
      CHECK(expected.metrics.count == kImages);
      CHECK(are_same(train::evaluate(graph, *loader, net.group), expected));
      CHECK(graph.launches() == (launches += kFull));
      net.change(0.03f);
    }
  }
  CHECK(graph.recordings() == 1);
}

TEST_CASE("batches of other shapes are evaluated by operations, and larger ones begin a graph as long as there is none",
          "[cuda][evaluation]") {
  if (!has_gpu()) return;
  Net net;
  const auto usual = net.loader(1), large = net.loader(2, false, 12), small = net.loader(3, false, 5);
  EvaluationGraph graph(net.model, Scoring(), CudaGraph::on);
  const auto agrees = [&](data::Loader& loader) {
    return are_same(train::evaluate(graph, loader, net.group), net.eager(loader));
  };
  {
    const auto few = net.loader(3, false, kImages - 1);  // two batches, of which one is of one image
    CHECK(agrees(*few));
  }
  CHECK(graph.launches() == 0);
  EvaluationGraph other(net.model, Scoring(), CudaGraph::on);
  CHECK(are_same(train::evaluate(other, *small, net.group), net.eager(*small)));
  CHECK(other.launches() == kImages / 5 - 2);
  CHECK(are_same(train::evaluate(other, *large, net.group), net.eager(*large)));
  CHECK(are_same(train::evaluate(other, *small, net.group), net.eager(*small)));
  CHECK(other.launches() == 2 * (kImages / 5) - 2);
  CHECK(other.recordings() == 1);
}

TEST_CASE("losses of the program's own and mixed labels are summed up in a graph as without", "[cuda][evaluation]") {
  if (!has_gpu()) return;
  Net net;
  const auto loader = net.loader(1);
  int calls = 0;
  const Scoring scoring([&](const Tensor& output, const Tensor& labels) {
    ++calls;
    return autograd::softmax_cross_entropy(output, labels, 0.1) + autograd::mean(autograd::abs(output));
  });
  const Scores expected = net.eager(*loader, scoring);
  EvaluationGraph graph(net.model, scoring, CudaGraph::on);
  calls = 0;
  for (int time = 0; time < 3; ++time) CHECK(are_same(train::evaluate(graph, *loader, net.group), expected));
  CHECK(calls == 3 + 3);  // two eager batches, the recording, and the last batch of each
}

TEST_CASE("an evaluation is recorded anew where a tensor of the model moves, a mode changes or a module is added",
          "[cuda][evaluation]") {
  if (!has_gpu()) return;
  Net net;
  const auto loader = net.loader(1);
  EvaluationGraph graph(net.model, Scoring(), CudaGraph::on);
  train::evaluate(graph, *loader, net.group);
  CHECK(graph.launches() == kFull - 2);
  const Notices notices;
  std::vector<Tensor> kept;
  SECTION("a parameter") {
    const Tensor weight = net.model.parameters().front();
    kept.push_back(weight.detach());
    weight.set_data(autograd::scale(weight.detach(), 2.0));
  }
  SECTION("a running statistic") {
    for (const auto& [name, buffer] : net.model.named_buffers()) {
      if (buffer.device() != kGpu) continue;
      kept.push_back(buffer.detach());
      buffer.set_data(autograd::scale(buffer.detach(), 1.5));
    }
  }
  SECTION("a module") { net.model.add<layers::Scale>(0.25); }
  CHECK(are_same(train::evaluate(graph, *loader, net.group), net.eager(*loader)));
  CHECK(graph.launches() == 2 * kFull - 3);
  CHECK(graph.recordings() == 2);
  REQUIRE(notices.lines.size() == 1);
  CHECK_THAT(notices.lines[0], ContainsText("CUDA graph: the evaluation is recorded anew: a module's mode, what"));
  CHECK(are_same(train::evaluate(graph, *loader, net.group), net.eager(*loader)));
  CHECK(graph.launches() == 3 * kFull - 3);
}

TEST_CASE("a mode that changes between batches drops the graph", "[cuda][evaluation]") {
  if (!has_gpu()) return;
  Net net;
  const auto loader = net.loader(1);
  EvaluationGraph graph(net.model, Scoring(), CudaGraph::on);
  train::evaluate(graph, *loader, net.group);
  const autograd::NoGrad no_grad;
  const layers::ModeScope evaluating(net.model, false);
  const auto sum = [&](auto&& add) {
    loader->start(0);
    while (const auto batch = loader->next()) {
      net.model[1].train(batch->index % 4 == 1);  // batch norm by the statistics of the batch
      add(*batch);
    }
  };
  train::RunningScores expected{Scoring()};
  {
    const layers::SameBuffers buffers(net.model);
    sum([&](const data::Batch& batch) {
      const Tensor output = net.model(batch.images);
      expected.begin_step();
      expected.add_on_device(graph.scoring().loss(output, batch.labels), output, batch.labels, batch.count());
      expected.end_step(1);
    });
  }
  graph.start();
  std::vector<bool> launched;
  sum([&](const data::Batch& batch) { launched.push_back(graph.add(batch)); });
  CHECK(graph.scores().metrics.loss_sum == expected.all().metrics.loss_sum);
  CHECK(launched == std::vector<bool>{true, false, true, true, false});
}

TEST_CASE("an evaluation that is left in its middle leaves nothing to the next one", "[cuda][evaluation]") {
  if (!has_gpu()) return;
  Net net;
  const auto loader = net.loader(1);
  EvaluationGraph graph(net.model, Scoring(), CudaGraph::on);
  const Scores expected = net.eager(*loader);
  for (const int batches : {1, 2, 3, 1, 4, 2}) {
    int seen = 0;
    CHECK_FALSE(train::evaluate_unless([&] { return ++seen == batches; }, graph, *loader, net.group));
    if (batches > 2) CHECK(are_same(train::evaluate(graph, *loader, net.group), expected));
  }
  CHECK(graph.recordings() == 1);
}

TEST_CASE("what a forward throws while it is recorded reaches the program, and later evaluations are right",
          "[cuda][evaluation]") {
  if (!has_gpu()) return;
  Net net;
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
  CHECK(graph.launches() == 2 * kFull);  // the first ones were eager before the exception
}

TEST_CASE("a forward that cannot be recorded is an error, or eager with the same scores", "[cuda][evaluation]") {
  if (!has_gpu()) return;
  Net net;
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
}

TEST_CASE("a model that draws random numbers is evaluated by operations, which draw what they draw without a graph",
          "[cuda][evaluation]") {
  if (!has_gpu()) return;
  Net net;
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
  Net net, here(autograd::Precision::fp32, Device{});
  const Scoring with_metric({}, {{"none", [](const Tensor&, const Tensor&) { return 0.0; }}});
  CHECK_THAT(error_of([&] { EvaluationGraph(here.model, Scoring(), CudaGraph::on); }),
             ContainsText("CUDA graph: the evaluation cannot be recorded: the model is on the CPU"));
  CHECK_THAT(error_of([&] { EvaluationGraph(net.model, with_metric, CudaGraph::on); }),
             ContainsText("metrics of the program's own are computed by the host"));
  const auto images = std::make_shared<const data::ImageDataset>(
      data::make_synthetic({.count = kImages, .channels = 3, .side = kSide, .seed = 1}));
  data::Loader canonical(images, {.global_batch_size = kBatch, .share = {.micro_batches = 2}, .device = kGpu});
  EvaluationGraph on(net.model, Scoring(), CudaGraph::on);
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
  Net net;
  const auto loader = net.loader(1);
  EvaluationGraph graph(net.model, Scoring(), CudaGraph::on);
  const Scores expected = net.eager(*loader);
  train::evaluate(graph, *loader, net.group);
  int calls = 0;
  auto handle = net.model.register_forward_hook([&](layers::Module&, const Tensor&, const Tensor&) { ++calls; });
  CHECK(are_same(train::evaluate(graph, *loader, net.group), expected));
  CHECK(calls == kFull + 1);
  CHECK(graph.launches() == kFull - 2);
  handle.remove();
  CHECK(are_same(train::evaluate(graph, *loader, net.group), expected));
  CHECK(graph.launches() == 2 * kFull - 2);
}

TEST_CASE("a label outside of the classes is named also where its batch is a launch", "[cuda][evaluation]") {
  if (!has_gpu()) return;
  Net net;
  const auto images = std::make_shared<data::ImageDataset>(
      data::make_synthetic({.count = kImages, .channels = 3, .side = kSide, .seed = 1}));
  data::Loader loader(images, {.global_batch_size = kBatch, .device = kGpu});
  EvaluationGraph graph(net.model, Scoring(), CudaGraph::on);
  train::evaluate(graph, loader, net.group);
  Out(images->labels).data<std::int64_t>()[17] = Setup::kClasses;
  CHECK_THAT(error_of([&] { train::evaluate(graph, loader, net.group); }), ContainsText("outside of the 10 classes"));
  Out(images->labels).data<std::int64_t>()[17] = 0;
  CHECK(are_same(train::evaluate(graph, loader, net.group), net.eager(loader)));
}

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
  Net net;
  EvaluationGraph keeps_none(net.model, Scoring(), CudaGraph::on);
  train::EvaluationDetails details;
  CHECK_THAT(error_of([&] { train::evaluate(keeps_none, *net.loader(1), net.group, &details); }),
             ContainsText("details are made of outputs, and this graph does not keep them"));
}

TEST_CASE("outputs are kept also where the first evaluation was too short for a graph", "[cuda][evaluation]") {
  if (!has_gpu()) return;
  Net net;
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
  Net net;
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
    CHECK(graph.launches() == 3 * kFull - 3);
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
          data::make_synthetic({.count = 2 * kBatch, .channels = 3, .side = side, .seed = 1}));
      data::Loader loader(images, {.global_batch_size = kBatch, .device = kGpu});
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
