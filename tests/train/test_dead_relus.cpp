// Channels of ReLUs that are made dead on purpose.
#include "tandem/kernels/activation/activation.h"
#include "tandem/train/dead_relus.h"

#include "tandem/autograd/functions/arithmetic.h"
#include "tandem/autograd/grad_mode.h"
#include "tandem/comm/backends/threads/thread_ranks.h"
#include "tandem/data/batch.h"
#include "tandem/data/synthetic.h"
#include "tandem/layers/layers.h"
#include "tandem/optim/sgd.h"
#include "tandem/train/trainer.h"
#include "tests/support/catch.h"

#include <utility>
#include <vector>

using namespace tandem;
using namespace tandem::train;

namespace {

/// [1] -> [3]: channel 0 lets positive inputs through, 1 none, 2 negative ones.
class Slopes final : public layers::Module {
 public:
  explicit Slopes(int calls = 1) : calls_(calls) {
    register_module("linear", linear_);
    register_module("relu", relu_);
    linear_.weight().copy_from(Tensor::from<float>(std::vector<float>{1.0F, 0.0F, -1.0F}, {3, 1}));
  }
  /// Of several calls each sees the input less 2 more.
  Tensor forward(const Tensor& input) override {
    Tensor output;
    for (int call = 0; call < calls_; ++call)
      output = relu_(linear_(autograd::sub(input, Tensor::full({1, 1}, 2.0 * call))));
    return output;
  }

 private:
  int calls_;
  layers::Initializer initializer_{1};
  layers::Linear linear_{{.in = 1, .out = 3, .bias = false}, initializer_};
  layers::ReLU relu_;
};

Tensor column(const std::vector<float>& values) {
  return Tensor::from<float>(values, {static_cast<std::int64_t>(values.size()), 1});
}

using Relus = std::vector<DeadRelus>;

/// Of each rank's batches.
std::vector<Relus> dead_by_rank(const std::vector<std::vector<Tensor>>& batches, int calls = 1) {
  std::vector<Relus> all(batches.size());
  comm::run_thread_ranks(static_cast<int>(batches.size()), [&](comm::ProcessGroup& group) {
    const autograd::NoGrad no_grad;
    const auto rank = static_cast<std::size_t>(group.rank());
    Slopes model(calls);
    DeadReluMeter meter(model);
    for (const Tensor& batch : batches[rank]) model(batch);
    all[rank] = meter.dead_relus(group);
  });
  return all;
}

}  // namespace

TEST_CASE("a ReLU's channel is dead that gives 0 for every image of every batch and rank") {
  const Tensor positive = column({1.0F, 2.0F}), negative = column({-3.0F, -1.0F}), zero = column({0.0F});
  CHECK(dead_by_rank({{positive}}).front() == Relus{{"relu", 3, 2}});
  CHECK(dead_by_rank({{positive, negative}}).front() == Relus{{"relu", 3, 1}});
  CHECK(dead_by_rank({{zero, zero}}).front() == Relus{{"relu", 3, 3}});
  const std::vector<Relus> two = dead_by_rank({{positive}, {zero, negative}});
  CHECK(two[0] == Relus{{"relu", 3, 1}});
  CHECK(two[1] == two[0]);
  const std::vector<Relus> one_without = dead_by_rank({{positive}, {}});
  CHECK(one_without[0] == Relus{{"relu", 3, 2}});
  CHECK(one_without[1].empty());
  CHECK(dead_by_rank({{}, {}})[0].empty());
}

TEST_CASE("each call of a ReLU that places share counts by itself") {
  const Relus relus = dead_by_rank({{column({1.0F, 1.5F}), column({0.5F})}}, 2).front();  // and less 2
  CHECK(relus == Relus{{"relu", 3, 2}, {"relu (call 2)", 3, 2}});
  CHECK(dead_by_rank({{column({1.0F, 3.0F})}}, 2).front() == Relus{{"relu", 3, 2}, {"relu (call 2)", 3, 1}});
}

TEST_CASE("fused ReLUs count, and layers without one do not") {
  layers::Initializer initializer(1);
  layers::Sequential model;
  auto& conv = model.add<layers::Conv2d>({.in = 1, .out = 2, .kernel = 1, .relu = true}, initializer);
  model.add<layers::BatchNorm2d>({.channels = 2, .activation = layers::Activation::relu});
  model.add<layers::BatchNorm2d>({.channels = 2, .activation = layers::Activation::gelu});
  model.add<layers::Flatten>();
  model.add<layers::Linear>({.in = 8, .out = 4, .relu = true}, initializer);
  model.add<layers::Linear>({.in = 4, .out = 2}, initializer);
  conv.weight().detach().copy_from(Tensor::from<float>(std::vector<float>{0.0F, 1.0F}, {2, 1, 1, 1}));
  conv.bias().detach().copy_from(Tensor::from<float>(std::vector<float>{-1.0F, 0.0F}, {2}));
  model.eval();
  const DType dtype = GENERATE(DType::f32, DType::f16);
  if (dtype == DType::f16) model.to(dtype);
  Relus relus;
  comm::run_thread_ranks(1, [&](comm::ProcessGroup& group) {
    const autograd::NoGrad no_grad;
    DeadReluMeter meter(model);
    Tensor images = Tensor::zeros({2, 1, 2, 2}, {.dtype = dtype});
    model(images);
    images = Tensor::full({1, 1, 2, 2}, 0.5, {.dtype = dtype});
    model(images);
    relus = meter.dead_relus(group);
  });
  REQUIRE(relus.size() == 3);
  CHECK(relus[0] == DeadRelus{"0", 2, 1});
  CHECK(relus[1] == DeadRelus{"2", 2, 1});
  CHECK(relus[2].name == "7");
  CHECK(relus[2].channels == 4);
  CHECK_FALSE(conv.is_observed());
}

TEST_CASE("an output without channels is one, however many images its batches have") {
  layers::ReLU model;
  Relus relus;
  comm::run_thread_ranks(1, [&](comm::ProcessGroup& group) {
    const autograd::NoGrad no_grad;
    DeadReluMeter meter(model);
    model(Tensor::full({3}, -1.0));
    model(Tensor::full({}, -1.0));
    relus = meter.dead_relus(group);
    model(Tensor::full({2}, 1.0));
    for (const DeadRelus& alive : meter.dead_relus(group)) relus.push_back(alive);
  });
  CHECK(relus == Relus{{"", 1, 1}, {"", 1, 0}});
}

TEST_CASE("a trainer has the dead ReLUs of each evaluation where they are asked for, and the same weights") {
  const ForwardFunction by_itself = [](layers::Module& model, const data::Batch& batch) {
    return model.forward(batch.images);  // the model's own hooks don't see it
  };
  const auto run = [](bool dead_relus, const ForwardFunction& forward = {}) {
    layers::Initializer initializer(1);
    layers::Sequential model;
    model.add<layers::Flatten>();
    auto& first = model.add<layers::Linear>({.in = 64, .out = 8, .relu = true}, initializer);
    model.add<layers::Linear>({.in = 8, .out = 10}, initializer);
    const Tensor bias = first.bias().detach();
    bias.copy_from(Tensor::from<float>(std::vector<float>{0, 0, 0, -100, 0, 0, -100, 0}, {8}));
    optim::SGD optimizer(model.parameters(), {.lr = 0.1});
    const data::ImageDataset images = data::make_synthetic({.count = 20, .channels = 1, .side = 8, .seed = 3});
    data::Loader training(images, {.global_batch_size = 8}), testing(images, {.global_batch_size = 8});
    Trainer trainer(model, optimizer, training, {.test = &testing, .dead_relus = dead_relus, .forward = forward});
    const EpochRecord record = trainer.fit(2);
    return std::pair(record.dead_relus, model.parameters()[0].to_vector<float>());
  };
  const auto [relus, weights] = run(true);
  REQUIRE(relus.size() == 1);
  CHECK(relus[0].name == "1");
  CHECK(relus[0].channels == 8);
  CHECK(relus[0].dead >= 2);
  CHECK(relus[0].dead < 8);
  CHECK(relus[0].percent() == 12.5 * static_cast<double>(relus[0].dead));
  CHECK(run(true, by_itself).first == relus);
  const auto [none, same] = run(false);
  CHECK(none.empty());
  CHECK(same == weights);
}
