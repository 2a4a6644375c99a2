// What layers do in one operation on a GPU: a fused convolution and the pool right after it, a convolution and the
// batch norm after it.
#include "tandem/autograd/functions/reduce.h"
#include "tandem/autograd/precision.h"
#include "tandem/autograd/variable.h"
#include "tandem/core/memory.h"
#include "tandem/core/out.h"
#include "tandem/kernels/activation/activation.h"
#include "tandem/layers/layers.h"
#include "tandem/layers/models/models.h"
#include "tests/support/catch.h"
#include "tests/support/cuda_device.h"
#include "tests/support/error_of.h"

using namespace tandem;
using namespace tandem::layers;
using namespace tandem::test;

namespace {

struct Outcome {
  std::vector<float> output, grad_weight, grad_bias;
  std::int64_t peak_bytes;  // of the forward pass
};

Outcome run(Sequential& network, const Tensor& images) {
  network.zero_grad();
  reset_peak_memory();
  const std::int64_t before = memory_stats(kGpu).current_total;
  const Tensor y = network(images);
  Outcome outcome{y.to_vector<float>(), {}, {}, memory_stats(kGpu).peak_total - before};
  autograd::backward(autograd::sum(y));
  const std::vector<Tensor> parameters = network.parameters();
  outcome.grad_weight = autograd::grad(parameters[0]).to(Device{}).to_vector<float>();
  outcome.grad_bias = autograd::grad(parameters[1]).to(Device{}).to_vector<float>();
  return outcome;
}

}  // namespace

TEST_CASE("a convolution and the pool after it are one operation on a GPU, unless somebody looks", "[cuda]") {
  if (!has_gpu()) return;
  Initializer initializer(1);
  Sequential network;
  network.add<Conv2d>(
      {.in = 8, .out = 16, .kernel = {3, 3}, .padding = {1, 1}, .relu = true, .impl = kernels::ConvImpl::fused},
      initializer);
  network.add<MaxPool2d>(2);
  network.to(DType::f16);
  network.to(kGpu);
  const Tensor images = Tensor::full({2, 8, 7, 10}, 0.25, {.dtype = DType::f16, .layout = Layout::channels_last});
  for (std::int64_t i = 0; i < images.numel(); ++i)
    Out(images).data<Half>()[i] = Half(static_cast<float>(i % 7) * 0.5f - 1.0f);
  const Tensor there = images.to(kGpu);

  const Outcome together = run(network, there);
  int seen = 0;
  network[0].set_observer([&](const Tensor& output) {
    ++seen;
    CHECK(output.shape() == Shape{2, 16, 7, 10});
  });
  const Outcome apart = run(network, there);
  CHECK(seen == 1);
  CHECK(together.output == apart.output);
  CHECK(together.grad_weight == apart.grad_weight);
  CHECK(together.grad_bias.size() == 16);
  CHECK(together.peak_bytes < apart.peak_bytes);

  network[0].set_observer({});
  network[1].set_observer([&](const Tensor& output) {
    ++seen;
    CHECK(output.shape() == Shape{2, 16, 3, 5});
  });
  run(network, there);
  CHECK(seen == 2);
}

TEST_CASE("a pool whose last windows only partly fit keeps them behind a convolution on a GPU", "[cuda]") {
  if (!has_gpu()) return;
  Initializer initializer(1);
  Sequential network;
  network.add<Conv2d>({.in = 8, .out = 16, .kernel = {3, 3}, .padding = {1, 1}, .relu = true}, initializer);
  network.add<MaxPool2d>(MaxPool2d::Options{.kernel = 2, .ceil_mode = true});
  const Tensor images = Tensor::full({1, 8, 5, 7}, 0.25);
  CHECK(network(images).shape() == Shape{1, 16, 3, 4});
  network.to(kGpu);
  CHECK(network(images.to(kGpu)).shape() == Shape{1, 16, 3, 4});
}

TEST_CASE("a pool at the head of one sequence is fused with the convolution at the end of the one before", "[cuda]") {
  if (!has_gpu()) return;
  const auto model = make_model({.name = "mnist_cnn", .in_channels = 1, .image_size = 10, .layers = 2});
  auto& network = dynamic_cast<Sequential&>(*model);
  auto &features = dynamic_cast<Sequential&>(network[0]), &classifier = dynamic_cast<Sequential&>(network[1]);
  // Whole numbers: sums are exact in any order.
  unsigned drawn = 1;
  const auto small_integers = [&](const Shape& shape) {
    const Tensor numbers = Tensor::empty(shape);
    for (std::int64_t i = 0; i < numbers.numel(); ++i) {
      drawn = drawn * 1664525u + 1013904223u;
      Out(numbers).data<float>()[i] = static_cast<float>(static_cast<int>(drawn >> 24) % 3 - 1);
    }
    return numbers;
  };
  for (const Tensor& parameter : network.parameters()) parameter.detach().copy_from(small_integers(parameter.shape()));
  network.set_precision(autograd::Precision::fp16);
  network.to(kGpu);
  const Tensor images = small_integers({2, 1, 10, 10}).to(kGpu);

  struct Result {
    std::vector<std::vector<float>> values;  // of the output and all gradients
    std::int64_t peak_bytes;                 // of the forward pass
  };
  const auto result = [&] {
    network.zero_grad();
    reset_peak_memory();
    const std::int64_t before = memory_stats(kGpu).current_total;
    const Tensor y = network(images);
    Result all{{y.to_vector<float>()}, memory_stats(kGpu).peak_total - before};
    autograd::backward(autograd::sum(y));
    for (const Tensor& parameter : network.parameters())
      all.values.push_back(autograd::grad(parameter).to(Device{}).to_vector<float>());
    return all;
  };
  const Result together = result();
  CHECK(together.values.size() == 7);
  int seen = 0;
  for (Module* const watched : {&features[1], &classifier[0], &network[0], &network[1]}) {
    const int before = seen;
    watched->set_observer([&](const Tensor&) { ++seen; });
    const Result apart = result();
    watched->set_observer({});
    CHECK(seen == before + 1);
    CHECK(together.values == apart.values);
    CHECK(together.peak_bytes < apart.peak_bytes);
  }
  // Errors are still told from where they are.
  CHECK_THAT(error_of([&] { network(Tensor::zeros({2, 1, 14, 14}, images.options())); }),
             ContainsText("layer classifier.2: linear"));
  CHECK_THAT(error_of([&] { network(Tensor::zeros({2, 3, 10, 10}, images.options())); }),
             ContainsText("layer features.0: "));
}

TEST_CASE("a convolution leaves moments for the batch norm after it, unless somebody looks", "[cuda]") {
  if (!has_gpu()) return;
  const Activation activation = GENERATE(Activation::relu, Activation::gelu);
  const auto train = [&](bool watched) {
    Initializer initializer(3);
    Sequential network;
    network.add<Conv2d>(
        {.in = 8, .out = 16, .kernel = {3, 3}, .padding = {1, 1}, .bias = false, .impl = kernels::ConvImpl::fused},
        initializer);
    network.add<BatchNorm2d>({.channels = 16, .activation = activation});
    network.set_precision(autograd::Precision::fp16);
    network.to(kGpu);
    int seen = 0;
    if (watched) network[0].set_observer([&](const Tensor&) { ++seen; });
    const Tensor images = Tensor::empty({2, 8, 7, 10}, {.dtype = DType::f16, .layout = Layout::channels_last});
    for (std::int64_t i = 0; i < images.numel(); ++i)
      Out(images).data<Half>()[i] = Half(static_cast<float>(i % 11) * 0.5f - 1.0f);
    const Tensor y = network(images.to(kGpu));
    autograd::backward(autograd::sum(y));
    CHECK(seen == (watched ? 1 : 0));
    std::vector<std::vector<float>> all{y.to_vector<float>()};
    for (const Tensor& parameter : network.parameters())
      all.push_back(autograd::grad(parameter).to(Device{}).to_vector<float>());
    for (const auto& [name, buffer] : network.named_buffers())
      if (is_floating(buffer.dtype())) all.push_back(buffer.to(Device{}).to_vector<float>());
    return all;
  };
  const auto together = train(false), apart = train(true);
  REQUIRE(together.size() == apart.size());
  CHECK(together.size() == 6);  // y, three gradients, two running statistics
  for (std::size_t i = 0; i < apart.size(); ++i) {
    REQUIRE(together[i].size() == apart[i].size());
    for (std::size_t j = 0; j < apart[i].size(); ++j)
      CHECK(together[i][j] == Approx(apart[i][j]).epsilon(4e-3).margin(4e-3));
  }
}
