// Evaluations whose batches are launches of a CUDA graph.
#include "tandem/autograd/functions.h"
#include "tandem/autograd/grad_mode.h"
#include "tandem/data/loader.h"
#include "tandem/data/synthetic.h"
#include "tandem/layers/layers.h"
#include "tandem/layers/mode_scope.h"
#include "tandem/layers/random_state.h"
#include "tandem/train/evaluation_graph.h"
#include "tandem/train/running_scores.h"
#include "tandem/train/test_time_augmentation.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"
#include "tests/train/evaluated_net.h"
#include "tests/train/graph_run.h"

using namespace tandem;
using namespace tandem::test;

namespace {

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
  EvaluatedNet net(of.precision);
  EvaluationGraph graph(net.model, over(of.views, of.share), CudaGraph::on);
  const auto first = net.loader(1), second = net.loader(2, true);
  std::int64_t launches = -2;
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (data::Loader* const loader : {first.get(), second.get()}) {
      const Scores expected = net.eager(*loader, over(of.views, of.share));
      CHECK(expected.metrics.count == EvaluatedNet::kImages);
      CHECK(are_same(train::evaluate(graph, *loader, net.group), expected));
      CHECK(graph.launches() == (launches += EvaluatedNet::kFull));
      net.change(0.03f);
    }
  }
  CHECK(graph.recordings() == 1);
}

TEST_CASE("batches of other shapes are evaluated by operations, and larger ones begin a graph as long as there is none",
          "[cuda][evaluation]") {
  if (!has_gpu()) return;
  EvaluatedNet net;
  const auto usual = net.loader(1), large = net.loader(2, false, 12), small = net.loader(3, false, 5);
  EvaluationGraph graph(net.model, Scoring(), CudaGraph::on);
  const auto agrees = [&](data::Loader& loader) {
    return are_same(train::evaluate(graph, loader, net.group), net.eager(loader));
  };
  {
    const auto few = net.loader(3, false, EvaluatedNet::kImages - 1);  // two batches, of which one is of one image
    CHECK(agrees(*few));
  }
  CHECK(graph.launches() == 0);
  EvaluationGraph other(net.model, Scoring(), CudaGraph::on);
  CHECK(are_same(train::evaluate(other, *small, net.group), net.eager(*small)));
  CHECK(other.launches() == EvaluatedNet::kImages / 5 - 2);
  CHECK(are_same(train::evaluate(other, *large, net.group), net.eager(*large)));
  CHECK(are_same(train::evaluate(other, *small, net.group), net.eager(*small)));
  CHECK(other.launches() == 2 * (EvaluatedNet::kImages / 5) - 2);
  CHECK(other.recordings() == 1);
}

TEST_CASE("losses of the program's own and mixed labels are summed up in a graph as without", "[cuda][evaluation]") {
  if (!has_gpu()) return;
  EvaluatedNet net;
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
  EvaluatedNet net;
  const auto loader = net.loader(1);
  EvaluationGraph graph(net.model, Scoring(), CudaGraph::on);
  train::evaluate(graph, *loader, net.group);
  CHECK(graph.launches() == EvaluatedNet::kFull - 2);
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
  CHECK(graph.launches() == 2 * EvaluatedNet::kFull - 3);
  CHECK(graph.recordings() == 2);
  REQUIRE(notices.lines.size() == 1);
  CHECK_THAT(notices.lines[0], ContainsText("CUDA graph: the evaluation is recorded anew: a module's mode, what"));
  CHECK(are_same(train::evaluate(graph, *loader, net.group), net.eager(*loader)));
  CHECK(graph.launches() == 3 * EvaluatedNet::kFull - 3);
}

TEST_CASE("a mode that changes between batches drops the graph", "[cuda][evaluation]") {
  if (!has_gpu()) return;
  EvaluatedNet net;
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
  EvaluatedNet net;
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

TEST_CASE("a label outside of the classes is named also where its batch is a launch", "[cuda][evaluation]") {
  if (!has_gpu()) return;
  EvaluatedNet net;
  const auto images = std::make_shared<data::ImageDataset>(
      data::make_synthetic({.count = EvaluatedNet::kImages, .channels = 3, .side = EvaluatedNet::kSide, .seed = 1}));
  data::Loader loader(images, {.global_batch_size = EvaluatedNet::kBatch, .device = kGpu});
  EvaluationGraph graph(net.model, Scoring(), CudaGraph::on);
  train::evaluate(graph, loader, net.group);
  Out(images->labels).data<std::int64_t>()[17] = Setup::kClasses;
  CHECK_THAT(error_of([&] { train::evaluate(graph, loader, net.group); }), ContainsText("outside of the 10 classes"));
  Out(images->labels).data<std::int64_t>()[17] = 0;
  CHECK(are_same(train::evaluate(graph, loader, net.group), net.eager(loader)));
}
