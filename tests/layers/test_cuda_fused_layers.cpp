// What layers do in one operation on a GPU: a convolution and the pool right after it, a convolution and the batch norm
// after it, and all three.
#include "tandem/autograd/functions.h"
#include "tandem/autograd/precision.h"
#include "tandem/autograd/variable.h"
#include "tandem/core/memory.h"
#include "tandem/core/out.h"
#include "tandem/kernels/activation/activation.h"
#include "tandem/kernels/float32_products.h"
#include "tandem/layers/layers.h"
#include "tandem/layers/models/models.h"
#include "tests/support/catch.h"
#include "tests/support/cuda_device.h"
#include "tests/support/error_of.h"

#include <cmath>
#include <memory>

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

namespace {

struct Trained {
  std::vector<std::vector<float>> values;  // the output, gradients of parameters, and floating buffers
  std::int64_t peak_bytes;                 // of the forward pass
};

/// One pass of a network in training, forward and backward.
Trained train_once(Module& network, const Tensor& images) {
  network.zero_grad();
  reset_peak_memory();
  const std::int64_t before = memory_stats(kGpu).current_total;
  const Tensor y = network(images);
  Trained all{{y.to_vector<float>()}, memory_stats(kGpu).peak_total - before};
  // Other gradients for all outputs: the sum over a batch is not that of batch norm.
  const Tensor weights = Tensor::empty(y.shape());
  for (std::int64_t i = 0; i < weights.numel(); ++i)
    Out(weights).data<float>()[i] = static_cast<float>(i * 5 % 17) * 0.125f - 1.0f;
  autograd::backward(autograd::sum(autograd::mul(y, autograd::cast(weights, y.dtype()).to(kGpu))));
  for (const Tensor& parameter : network.parameters())
    if (autograd::grad(parameter).defined())
      all.values.push_back(autograd::grad(parameter).to(Device{}).to_vector<float>());
  for (const auto& [name, buffer] : network.named_buffers())
    if (is_floating(buffer.dtype())) all.values.push_back(buffer.to(Device{}).to_vector<float>());
  return all;
}

Tensor some_images(const Shape& shape) {
  const Tensor images = Tensor::empty(shape, {.layout = Layout::channels_last});
  for (std::int64_t i = 0; i < images.numel(); ++i)
    Out(images).data<float>()[i] = static_cast<float>(i * 7 % 23) * 0.125f - 1.25f;
  return images.to(kGpu);
}

/// The largest difference of the tensor from the other, relative to the largest element of that.
double relative_difference(const std::vector<float>& got, const std::vector<float>& wanted) {
  REQUIRE(got.size() == wanted.size());
  double worst = 0.0, largest = 1e-30;
  for (std::size_t i = 0; i < got.size(); ++i) {
    worst = std::max(worst, std::abs(static_cast<double>(got[i]) - static_cast<double>(wanted[i])));
    largest = std::max(largest, std::abs(static_cast<double>(wanted[i])));
  }
  return worst / largest;
}

}  // namespace

TEST_CASE("a convolution pools and leaves moments for the batch norm behind the pool, unless somebody looks",
          "[cuda]") {
  if (!has_gpu()) return;
  const auto dtype = GENERATE(autograd::Precision::fp16, autograd::Precision::bf16, autograd::Precision::tf32);
  const bool has_bias = GENERATE(false, true), odd = GENERATE(false, true);
  const auto make = [&] {
    Initializer initializer(3);
    auto network = std::make_unique<Sequential>();
    network->add<Conv2d>(
        {.in = 8, .out = 24, .kernel = 3, .padding = 1, .bias = has_bias, .impl = kernels::ConvImpl::fused},
        initializer);
    network->add<MaxPool2d>(2);
    network->add<BatchNorm2d>({.channels = 24, .activation = Activation::gelu});
    network->set_precision(dtype);
    network->to(kGpu);
    return network;
  };
  const kernels::Float32ProductsScope products(kernels::Float32Products::tf32);
  const Tensor images = some_images({4, 8, odd ? 9 : 8, 10});
  const auto network = make();
  const Trained together = train_once(*network, images);
  CHECK(together.values.size() == (has_bias ? 7 : 6));
  for (std::size_t watched = 0; watched < 3; ++watched) {
    INFO("layer " << watched << " is watched");
    const auto other = make();
    int seen = 0;
    (*other)[watched].set_observer([&](const Tensor& output) {
      ++seen;
      CHECK(output.size(2) == (watched == 0 ? images.size(2) : 4));
    });
    const Trained apart = train_once(*other, images);
    CHECK(seen == 1);
    // Of the three together the whole result of the convolution is never there; nor is it if only batch norm is
    // watched.
    if (watched < 2) CHECK(together.peak_bytes < apart.peak_bytes);
    REQUIRE(together.values.size() == apart.values.size());
    // Maxima are the same bits, and their moments as near as f32 sums are; a rounding of y to the dtype may differ.
    const double tolerance = dtype == autograd::Precision::fp16   ? 0x1p-9
                             : dtype == autograd::Precision::bf16 ? 0x1p-6
                                                                  : 1e-4;
    for (std::size_t i = 0; i < apart.values.size(); ++i) {
      if (has_bias && i == 2) continue;  // the gradient of a bias before batch norm is 0, but for roundings
      INFO("tensor " << i);
      CHECK(relative_difference(together.values[i], apart.values[i]) <= tolerance);
    }
  }
  // Evaluation asks for no moments.
  network->eval();
  const std::vector<float> evaluated = (*network)(images).to_vector<float>();
  (*network)[0].set_observer([](const Tensor&) {});
  CHECK(evaluated == (*network)(images).to_vector<float>());
}

TEST_CASE("a step of airbench94 is the same with its convolutions, pools and batch norms at once and apart", "[cuda]") {
  if (!has_gpu()) return;
  const Tensor images = some_images({4, 3, 32, 32});
  const auto step = [&](bool watched) {
    const auto model = make_model({.name = "airbench94", .width = 0.25});
    model->set_precision(autograd::Precision::fp16);
    model->to(kGpu);
    int seen = 0;
    std::vector<Shape> shapes;
    if (watched) {
      for (const auto& [name, module] : model->named_modules()) {
        if (!name.ends_with("conv1")) continue;
        module->set_observer([&](const Tensor& output) {
          ++seen;
          shapes.push_back(output.shape());
        });
      }
    }
    const Trained all = train_once(*model, images);
    CHECK(seen == (watched ? 3 : 0));
    if (watched) CHECK(shapes.front() == Shape{4, 16, 31, 31});
    return all;
  };
  const Trained together = step(false), apart = step(true);
  CHECK(together.peak_bytes < apart.peak_bytes);
  REQUIRE(together.values.size() == apart.values.size());
  CHECK(together.values.size() > 20);
  for (std::size_t i = 0; i < apart.values.size(); ++i) {
    INFO("tensor " << i);
    CHECK(relative_difference(together.values[i], apart.values[i]) <= 0x1p-6);
  }
}
