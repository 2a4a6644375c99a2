// What the host does for a step that is a launch of a CUDA graph, and how many kernels such a step has.
#include "tandem/autograd/functions.h"
#include "tandem/autograd/precision.h"
#include "tandem/data/synthetic.h"
#include "tandem/kernels/loss/add_scores.h"
#include "tandem/layers/layers.h"
#include "tandem/layers/models/models.h"
#include "tandem/optim/grad_scaler.h"
#include "tandem/optim/gradient_places.h"
#include "tandem/optim/schedule.h"
#include "tandem/optim/sgd.h"
#include "tandem/simulator/graph.h"
#include "tandem/simulator/runtime.h"
#include "tandem/train/trainer.h"
#include "tests/support/catch.h"
#include "tests/support/cuda_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <string_view>

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

bool ends_with_any(const std::string& name, std::initializer_list<std::string_view> ends) {
  return std::ranges::any_of(ends, [&](std::string_view end) { return name.ends_with(end); });
}

/// The groups of recipes/airbench94.toml: biases of batch norm, and that of the whitening layer, which is frozen later.
void add_groups(const layers::Module& model, optim::Optimizer& optimizer) {
  optim::ParameterGroup biases{.lr_factor = 64.0, .weight_decay = 2.079e-5}, whitening{.freeze_step = 144};
  for (const auto& [name, parameter] : model.named_parameters()) {
    if (ends_with_any(name, {"norm1.bias", "norm2.bias"})) biases.parameters.push_back(parameter);
    if (name == "0.bias") whitening.parameters.push_back(parameter);
  }
  optimizer.add_group(biases);
  optimizer.add_group(whitening);
}

/// The kernels of a recorded step as a recipe has it, with SGD, on two images of 32 x 32, with how often each is there.
std::map<std::string, int> kernels_of_step(const layers::ModelOptions& options, autograd::Precision precision) {
  const auto model = layers::make_model(options);
  model->to(kGpu);
  model->set_precision(precision);
  optim::SGD optimizer(model->parameters(), {.lr = 0.1, .momentum = 0.85, .weight_decay = 1.33e-3, .nesterov = true});
  if (options.name == "airbench94") add_groups(*model, optimizer);
  optim::GradScaler scaler;
  if (precision == autograd::Precision::fp16) scaler = optim::GradScaler(optim::GradScalerOptions{.init_scale = 64.0});
  const optim::GradientPlaces places(optimizer.parameters());
  const Tensor images =
      Tensor::full({2, 3, 32, 32}, 0.5,
                   {.dtype = autograd::storage_dtype(precision), .layout = Layout::channels_last, .device = kGpu});
  const Tensor labels = Tensor::zeros({2}, {.dtype = DType::i64, .device = kGpu});
  const Tensor sums = kernels::make_score_sums(kGpu);
  const auto take_step = [&] {
    optimizer.zero_grad();
    const Tensor output = (*model)(images), loss = autograd::softmax_cross_entropy(output, labels, 0.2);
    kernels::add_scores(loss.detach(), output.detach(), labels, {.rows = 2, .begins_step = true}, Out(sums));
    autograd::backward(loss, scaler.start_gradient(loss));
    scaler.step(optimizer);
    scaler.update();
  };
  int steps = 0;
  while (optimizer.fewest_steps() < 2) {  // some may overflow
    REQUIRE(steps < 30);
    optimizer.begin_step(steps++);
    take_step();
  }
  optimizer.begin_step(steps);
  optimizer.prepare_recording();
  const WorkGraph graph(kGpu, take_step);
  const auto nodes = simulator::nodes_of(static_cast<cudaGraphExec_t>(graph.native()));
  // What sets the counters of launches in phases to 0, and the word that tells of gradients that are not finite.
  CHECK(std::ranges::count_if(nodes, [](const auto& node) { return node.type == cudaGraphNodeTypeMemset; }) <=
        (scaler.is_enabled() ? 2 : 1));
  std::map<std::string, int> kernels;
  for (const simulator::GraphNode& node : nodes)
    if (node.type == cudaGraphNodeTypeKernel) ++kernels[node.name];
  return kernels;
}

/// Of all names together; the list is shown where a check fails.
int launches_of(const std::map<std::string, int>& kernels) {
  int all = 0;
  for (const auto& [name, count] : kernels) all += count;
  return all;
}

std::string list_of(const std::map<std::string, int>& kernels) {
  std::string text;
  for (const auto& [name, count] : kernels) text += fmt::format("{:3} {}\n", count, name);
  return text;
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
  data::Loader loader(images,
                      {.global_batch_size = kBatch, .shuffle = true, .threads = 0, .device = kGpu, .resident = true});
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
    // Rates, which follow the schedule, and dropout's step; labels, and which images are in the batch.
    CHECK(behind[step].copies_to_device - behind[step - 1].copies_to_device <= 2 + 2);
    CHECK(behind[step].bytes_to_device - behind[step - 1].bytes_to_device < 1024);
    CHECK(behind[step].bytes_to_host - behind[step - 1].bytes_to_host == sizeof(kernels::ScoreSums));
  }
}

TEST_CASE("a recorded step has few kernels", "[cuda][trainer]") {
  if (!has_gpu()) return;
  for (const auto precision : {autograd::Precision::bf16, autograd::Precision::fp16}) {
    const bool scales = precision == autograd::Precision::fp16;  // asks whether gradients are finite, and more
    const auto vgg_lite = kernels_of_step({.name = "vgg_lite"}, precision);
    INFO(list_of(vgg_lite));
    CHECK(launches_of(vgg_lite) <= (scales ? 50 : 46));
    const auto airbench = kernels_of_step({.name = "airbench94", .width = 0.25}, precision);
    INFO(list_of(airbench));
    CHECK(launches_of(airbench) <= 60);
  }
}
