// What the host does for a step that is a launch of a CUDA graph, and how many kernels such a step has.
#include "tandem/autograd/functions.h"
#include "tandem/autograd/precision.h"
#include "tandem/data/synthetic.h"
#include "tandem/kernels/loss/add_scores.h"
#include "tandem/layers/layers.h"
#include "tandem/layers/models/models.h"
#include "tandem/optim/gradient_places.h"
#include "tandem/optim/schedule.h"
#include "tandem/optim/sgd.h"
#include "tandem/simulator/graph.h"
#include "tandem/simulator/runtime.h"
#include "tandem/train/trainer.h"
#include "tests/support/catch.h"
#include "tests/support/cuda_device.h"

#include <algorithm>
#include <memory>

using namespace tandem;
using namespace tandem::test;

namespace {

struct Counts {
  std::int64_t event_waits, stream_waits, copies_to_device, bytes_to_device, bytes_to_host;
};

Counts counts_so_far() {
  const simulator::RuntimeCounts& counts = simulator::runtime_counts();
  return {counts.event_waits, counts.stream_waits, counts.copies_to_device, counts.bytes_to_device,
          counts.bytes_to_host};
}

/// The kernels of a recorded step of a network of half precision with SGD, on two images of 32 x 32.
std::int64_t kernels_of_step(const layers::ModelOptions& options) {
  const auto model = layers::make_model(options);
  model->to(kGpu);
  model->set_precision(autograd::Precision::bf16);
  optim::SGD optimizer(model->parameters(), {.lr = 0.1, .momentum = 0.9, .weight_decay = 5e-4, .nesterov = true});
  const optim::GradientPlaces places(optimizer.parameters());
  const Tensor images =
      Tensor::full({2, 3, 32, 32}, 0.5, {.dtype = DType::bf16, .layout = Layout::channels_last, .device = kGpu});
  const Tensor labels = Tensor::zeros({2}, {.dtype = DType::i64, .device = kGpu});
  const Tensor sums = kernels::make_score_sums(kGpu);
  const auto take_step = [&] {
    optimizer.zero_grad();
    const Tensor output = (*model)(images), loss = autograd::softmax_cross_entropy(output, labels, 0.2);
    kernels::add_scores(loss.detach(), output.detach(), labels, {.rows = 2, .begins_step = true}, Out(sums));
    autograd::backward(loss);
    optimizer.step();
  };
  take_step();
  take_step();
  optimizer.prepare_recording();
  const WorkGraph graph(kGpu, take_step);
  const auto nodes = simulator::nodes_of(static_cast<cudaGraphExec_t>(graph.native()));
  const auto kernels =
      std::ranges::count_if(nodes, [](const auto& node) { return node.type == cudaGraphNodeTypeKernel; });
  // What sets the counters of launches in phases to 0.
  CHECK(std::ranges::count_if(nodes, [](const auto& node) { return node.type == cudaGraphNodeTypeMemset; }) <= 1);
  return kernels;
}

}  // namespace

TEST_CASE("a step that is a launch waits for earlier sums at most, and copies what has changed", "[cuda][trainer]") {
  if (!has_gpu()) return;
  constexpr std::int64_t kSteps = 8, kBatch = 8, kSide = 8;
  const auto images = std::make_shared<const data::ImageDataset>(
      data::make_synthetic({.count = kSteps * kBatch, .channels = 1, .side = kSide, .seed = 3}));
  layers::Initializer initializer(3);
  layers::Sequential model;
  model.add<layers::Conv2d>({.in = 1, .out = 8, .kernel = {3, 3}, .padding = {1, 1}}, initializer);
  model.add<layers::BatchNorm2d>({.channels = 8});
  model.add<layers::Flatten>();
  model.add<layers::Dropout>(0.2);
  model.add<layers::Linear>({.in = 8 * kSide * kSide, .out = 10}, initializer);
  model.to(kGpu);
  optim::SGD optimizer(model.parameters(), {.lr = 0.01, .momentum = 0.9});
  const optim::CosineSchedule schedule(kSteps);
  data::Loader loader(images, {.global_batch_size = kBatch, .shuffle = true, .device = kGpu, .resident = true});
  train::Trainer trainer(model, optimizer, loader, {.schedule = &schedule, .cuda_graph = train::CudaGraph::on});
  std::vector<Counts> behind;
  train::TrainObserver observer;
  observer.progress = [&](const train::Progress&) { behind.push_back(counts_so_far()); };
  trainer.fit(1, observer);
  REQUIRE(behind.size() == kSteps);
  CHECK(trainer.graph_launches() == kSteps - 2);
  for (std::size_t step = 4; step + 1 < behind.size(); ++step) {
    CAPTURE(step);
    CHECK(behind[step].stream_waits == behind[step - 1].stream_waits);
    CHECK(behind[step].event_waits - behind[step - 1].event_waits <= 1);
    // Rates, which follow the schedule, and dropout's step; labels and which images are in the batch, by the loader's
    // thread, of which some may fall into one step.
    CHECK(behind[step].copies_to_device - behind[step - 1].copies_to_device <= 2 + 3 * 2);
    CHECK(behind[step].bytes_to_device - behind[step - 1].bytes_to_device < 1024);
    CHECK(behind[step].bytes_to_host - behind[step - 1].bytes_to_host == sizeof(kernels::ScoreSums));
  }
}

TEST_CASE("a recorded step has few kernels", "[cuda][trainer]") {
  if (!has_gpu()) return;
  CHECK(kernels_of_step({.name = "vgg_lite"}) <= 45);
  CHECK(kernels_of_step({.name = "airbench94", .width = 0.25}) <= 54);
}
