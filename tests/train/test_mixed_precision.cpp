// Training in half precision: what fails without loss scaling, what half saves, and which weights are saved.
#include "tandem/autograd/functions/cast.h"
#include "tandem/autograd/functions/softmax_cross_entropy.h"
#include "tandem/autograd/precision.h"
#include "tandem/layers/models/models.h"
#include "tandem/optim/adam.h"
#include "tandem/train/metrics.h"
#include "tandem/train/weights.h"
#include "tests/support/catch.h"
#include "tests/train/mixed_training.h"

using namespace tandem;
using namespace tandem::test;
using autograd::Precision;
using optim::LossScaling;

TEST_CASE("a network whose gradients vanish in f16 trains with a loss scale and masters") {
  const auto f32 = train_mixed({.precision = Precision::fp32, .scaling = LossScaling::none});
  const auto mixed = train_mixed({});
  CHECK(f32.second < 0.6 * f32.first);
  CHECK(mixed.second < 0.6 * mixed.first);
  CHECK(std::abs(mixed.second - f32.second) < 0.02);
  // Without a scale all gradients of half weights are 0; only batch norm's f32 parameters learn a little.
  const auto pure = train_mixed({.scaling = LossScaling::none});
  INFO("losses: f32 " << f32.second << ", mixed " << mixed.second << ", f16 without a scale " << pure.second);
  CHECK(pure.second > 0.9 * pure.first);
  // bf16 has f32's range, and needs no scale.
  const auto bf16 = train_mixed({.precision = Precision::bf16, .scaling = LossScaling::none});
  CHECK(bf16.second < 0.6 * bf16.first);
}

TEST_CASE("half precision stores little more than half the activations") {
  const Precision half = GENERATE(Precision::fp16, Precision::bf16);
  const std::string name = GENERATE("small_cnn", "vgg_lite");
  const auto peak = [&](Precision precision) {
    const auto model = layers::make_model({.name = name, .image_size = 16});
    model->set_precision(precision);
    const Tensor images = Tensor::full({16, 3, 16, 16}, 0.5, {.layout = Layout::channels_last});
    const Tensor labels = Tensor::zeros({16}, {.dtype = DType::i64});
    images.storage()->set_tag(MemoryTag::data);
    labels.storage()->set_tag(MemoryTag::data);
    const std::int64_t before = memory_stats().current_of(MemoryTag::activations);
    reset_peak_memory();
    autograd::backward(autograd::softmax_cross_entropy((*model)(images), labels));
    return static_cast<double>(memory_stats().peak_of(MemoryTag::activations) - before);
  };
  const double full = peak(Precision::fp32), mixed = peak(half);
  INFO(name << ": " << full << " bytes in f32, " << mixed << " in " << autograd::name_of(half));
  CHECK(mixed <= 0.57 * full);  // sign masks, and positions of maxima, are as large in both
  CHECK(mixed >= 0.45 * full);
}

TEST_CASE("weights to be saved are the masters, and replicas have them in common") {
  const auto network = make_mixed_net(Precision::bf16);
  optim::Adam adam(network->parameters(), {});
  backward_points(*network, make_points(16, 0), 1.0);
  adam.step();
  const NamedTensors half = network->state_dict(), full = train::full_state_dict(*network, adam);
  REQUIRE(full.size() == half.size());
  int masters = 0;
  for (std::size_t i = 0; i < full.size(); ++i) {
    CHECK(full[i].first == half[i].first);
    CHECK(full[i].second.dtype() == (half[i].first.ends_with("num_batches_tracked") ? DType::i64 : DType::f32));
    if (half[i].second.dtype() != DType::bf16) continue;
    ++masters;
    CHECK(full[i].second.to_vector<float>() != half[i].second.to_vector<float>());
    CHECK(autograd::cast(full[i].second, DType::bf16).to_vector<float>() == half[i].second.to_vector<float>());
  }
  CHECK(masters == 4);
  const NamedTensors common = train::parameters_and_masters(*network, adam);
  CHECK(common.size() == 6 + 4);
  CHECK(common[6].first == "0.weight.master");
  CHECK(common[6].second.is_same(adam.master(0)));

  const auto again = make_mixed_net(Precision::bf16);
  again->load_state_dict(full);
  CHECK(again->parameters()[0].to_vector<float>() == network->parameters()[0].to_vector<float>());
}

TEST_CASE("accuracy is counted on half logits") {
  const Tensor logits = autograd::cast(Tensor::from(std::vector<float>{1, 2, 3, 3, 2, 1}, {2, 3}), DType::f16);
  CHECK(train::count_correct(logits, Tensor::from(std::vector<std::int64_t>{2, 1}, {2})) == 1);
}
