// A whole training step that is recorded once and launched for one batch after another.
#include "tandem/autograd/functions/cast.h"
#include "tandem/autograd/functions/softmax_cross_entropy.h"
#include "tandem/autograd/precision.h"
#include "tandem/core/work_graph.h"
#include "tandem/kernels/loss/add_scores.h"
#include "tandem/layers/layers.h"
#include "tandem/optim/gradient_places.h"
#include "tandem/optim/sgd.h"
#include "tests/support/catch.h"
#include "tests/support/cuda_device.h"
#include "tests/support/error_of.h"

#include <cmath>
#include <memory>

using namespace tandem;
using namespace tandem::test;

namespace {

constexpr std::int64_t kBatch = 4, kSide = 8, kClasses = 10;

/// A small network with batch norm and dropout on the GPU, and all that a step reads and writes.
struct Training {
  std::shared_ptr<layers::RandomState> random = std::make_shared<layers::RandomState>(5);
  layers::Sequential network;
  std::unique_ptr<optim::SGD> sgd;
  std::unique_ptr<optim::GradientPlaces> places;
  DType dtype;
  Tensor input, labels = Tensor::zeros({kBatch}, {.dtype = DType::i64, .device = kGpu});
  Tensor sums = kernels::make_score_sums(kGpu);

  explicit Training(autograd::Precision precision)
      : dtype(precision == autograd::Precision::fp32 ? DType::f32 : DType::f16) {
    layers::Initializer initializer(7);
    network.add<layers::Conv2d>({.in = 3, .out = 8, .kernel = {3, 3}, .padding = {1, 1}, .relu = true}, initializer);
    network.add<layers::MaxPool2d>(2);
    network.add<layers::BatchNorm2d>({.channels = 8});
    network.add<layers::Conv2d>({.in = 8, .out = 8, .kernel = {3, 3}, .padding = {1, 1}}, initializer);
    network.add<layers::GELU>();
    network.add<layers::Flatten>();
    network.add<layers::Dropout>(0.3);
    network.add<layers::Linear>({.in = 8 * 4 * 4, .out = kClasses}, initializer);
    network.set_precision(precision);
    network.to(kGpu);
    network.set_random_state(random);
    sgd = std::make_unique<optim::SGD>(
        network.parameters(), optim::SGDOptions{.lr = 0.05, .momentum = 0.9, .weight_decay = 0.01, .nesterov = true});
    places = std::make_unique<optim::GradientPlaces>(sgd->parameters());
    input = Tensor::zeros({kBatch, 3, kSide, kSide}, {.dtype = dtype, .layout = Layout::channels_last, .device = kGpu});
  }

  void set_batch(std::uint32_t number) {
    std::vector<float> values(static_cast<std::size_t>(input.numel()));
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = std::sin(static_cast<float>(i) * (0.37F + 0.11F * static_cast<float>(number)));
    input.copy_from(autograd::cast(Tensor::from(values, input.shape(), Layout::channels_last), dtype));
    std::vector<std::int64_t> classes;
    for (std::int64_t i = 0; i < kBatch; ++i) classes.push_back((3 * i + number) % kClasses);
    labels.copy_from(Tensor::from(classes, {kBatch}));
    random->set_step(number);
    sgd->set_lr_factor(number < 3 ? 1.0 : 1.0 / number);
  }

  void take_step() {
    sgd->zero_grad();
    const Tensor output = network(input), loss = autograd::softmax_cross_entropy(output, labels, 0.1);
    kernels::add_scores(loss.detach(), output.detach(), labels, {.rows = kBatch, .begins_step = true}, Out(sums));
    autograd::backward(loss);
    places->check();
    sgd->step();
  }

  /// Weights, what batch norm and the optimizer keep, gradients and sums.
  std::vector<std::vector<double>> contents() const {
    std::vector<std::vector<double>> all;
    for (const auto& [name, tensor] : network.state_dict())
      if (tensor.device() == kGpu) all.push_back(tensor.to_vector<double>());  // not the host's count of batches
    for (const auto& [name, tensor] : sgd->state_dict()) all.push_back(tensor.to_vector<double>());
    for (const Tensor& parameter : sgd->parameters()) all.push_back(autograd::grad(parameter).to_vector<double>());
    const kernels::ScoreSums scores = kernels::read_score_sums(sums.to(Device{}));
    all.push_back({scores.loss_sum, scores.step_loss_sum, static_cast<double>(scores.correct),
                   static_cast<double>(scores.count)});
    return all;
  }
};

}  // namespace

TEST_CASE("a recorded training step has the bits of eager steps, launch after launch", "[cuda][trainer]") {
  if (!has_gpu()) return;
  for (const auto precision : {autograd::Precision::fp32, autograd::Precision::fp16}) {
    CAPTURE(autograd::name_of(precision));
    Training eager(precision), recorded(precision);
    std::unique_ptr<WorkGraph> graph;
    for (std::uint32_t number = 0; number < 7; ++number) {
      CAPTURE(number);
      for (Training* const training : {&eager, &recorded}) training->set_batch(number);
      eager.take_step();
      if (number < 2) {
        recorded.take_step();
      } else {
        recorded.random->upload();
        if (graph == nullptr) {
          graph = std::make_unique<WorkGraph>(kGpu, [&] { recorded.take_step(); });
        } else {
          recorded.sgd->prepare_replay();
        }
        graph->launch();
      }
      REQUIRE(recorded.contents() == eager.contents());
    }
    CHECK(recorded.sgd->steps() == 7);
  }
}

TEST_CASE("a step whose gradients have no places is not recorded", "[cuda][trainer]") {
  if (!has_gpu()) return;
  Training training(autograd::Precision::fp32);
  for (std::uint32_t number = 0; number < 2; ++number) {
    training.set_batch(number);
    training.take_step();
  }
  training.places = std::make_unique<optim::GradientPlaces>(std::vector{Tensor::zeros({1}, {.device = kGpu})});
  training.sgd->zero_grad();
  training.random->upload();
  CHECK_THAT(error_of([&] { WorkGraph(kGpu, [&] { training.take_step(); }); }), ContainsText("cannot be recorded"));
}
