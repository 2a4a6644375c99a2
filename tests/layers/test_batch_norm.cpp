// Batch norm with a fixed weight, and with an eps as small as that of the speed runs.
#include "tandem/autograd/functions.h"
#include "tandem/autograd/variable.h"
#include "tandem/kernels/activation/activation.h"
#include "tandem/layers/layers.h"
#include "tandem/optim/sgd.h"
#include "tests/kernels/image_support.h"
#include "tests/support/catch.h"

#include <cmath>

using namespace tandem;
using namespace tandem::layers;
using namespace tandem::test;

namespace {

/// (x - mean) / sqrt(variance + eps) of each channel, in f64, by plain loops.
std::vector<double> normalised(const Tensor& x, double eps) {
  const auto values = x.to_vector<double>();
  const auto [batch, channels, pixels] =
      std::array{static_cast<std::size_t>(x.size(0)), static_cast<std::size_t>(x.size(1)),
                 static_cast<std::size_t>(x.size(2) * x.size(3))};
  std::vector<double> result(values.size());
  for (std::size_t c = 0; c < channels; ++c) {
    const auto each = [&](const auto& visit) {
      for (std::size_t n = 0; n < batch; ++n)
        for (std::size_t p = 0; p < pixels; ++p) visit((n * channels + c) * pixels + p);
    };
    const double count = static_cast<double>(batch * pixels);
    double mean = 0.0, variance = 0.0;
    each([&](std::size_t i) { mean += values[i] / count; });
    each([&](std::size_t i) { variance += (values[i] - mean) * (values[i] - mean) / count; });
    each([&](std::size_t i) { result[i] = (values[i] - mean) / std::sqrt(variance + eps); });
  }
  return result;
}

}  // namespace

TEST_CASE("a fixed weight of batch norm is a frozen parameter of ones") {
  BatchNorm2d fixed({.channels = 4, .train_weight = false}), trained({.channels = 4});
  CHECK(fixed.describe() == "BatchNorm2d(4, fixed weight)");
  CHECK(trained.describe() == "BatchNorm2d(4)");
  const NamedTensors state = fixed.state_dict(), same = trained.state_dict();
  REQUIRE(state.size() == same.size());
  for (std::size_t i = 0; i < state.size(); ++i) CHECK(state[i].first == same[i].first);
  CHECK(fixed.named_parameters()[0].first == "weight");
  CHECK(fixed.parameters()[0].to_vector<float>() == std::vector<float>(4, 1.0f));
  CHECK_FALSE(autograd::requires_grad(fixed.parameters()[0]));
  CHECK(autograd::requires_grad(fixed.parameters()[1]));
}

TEST_CASE("a fixed weight gets no gradient and stays, and the others are as with one that is trained") {
  const Tensor values = random_images({5, 4, 3, 3}, 1), gradient = random_images({5, 4, 3, 3}, 2);
  for (const Activation activation : {Activation::none, Activation::relu, Activation::gelu, Activation::silu}) {
    const auto run = [&](bool train_weight) {
      BatchNorm2d norm({.channels = 4, .activation = activation, .train_weight = train_weight});
      const Tensor x = autograd::set_requires_grad(values.clone());
      const Tensor y = norm(x);
      autograd::backward(y, gradient);
      CHECK(autograd::grad(norm.parameters()[0]).defined() == train_weight);
      const std::vector<Tensor> results{y.detach(), autograd::grad(x), autograd::grad(norm.parameters()[1])};
      optim::SGD(norm.parameters(), {.lr = 0.1, .weight_decay = 0.5}).step();
      CHECK((norm.parameters()[0].to_vector<float>() == std::vector<float>(4, 1.0f)) == !train_weight);
      CHECK(norm.parameters()[1].to_vector<float>() != std::vector<float>(4, 0.0f));
      return results;
    };
    const std::vector<Tensor> fixed = run(false), trained = run(true);
    for (std::size_t i = 0; i < fixed.size(); ++i) CHECK(same_bits(fixed[i], trained[i]));
  }
}

TEST_CASE("a fixed weight that a file gives another value is used as it is") {
  const Tensor values = random_images({5, 4, 3, 3}, 1);
  BatchNorm2d fixed({.channels = 4, .train_weight = false}), trained({.channels = 4});
  NamedTensors state;
  for (const auto& [name, tensor] : trained.state_dict()) state.emplace_back(name, tensor.clone());
  state[0].second = Tensor::from<float>({0.5f, 2.0f, -1.0f, 3.0f}, {4});
  fixed.load_state_dict(state);
  trained.load_state_dict(state);
  CHECK(same_bits(fixed(values).detach(), trained(values).detach()));
  CHECK_FALSE(autograd::requires_grad(fixed.parameters()[0]));
  fixed.to(DType::f64);
  CHECK_FALSE(autograd::requires_grad(fixed.parameters()[0]));
}

TEST_CASE("an eps of 1e-12 works in f32, of f32 and half images") {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    INFO(name_of(dtype));
    BatchNorm2d norm({.channels = 3, .eps = 1e-12, .train_weight = false});
    const Tensor x = in_dtype(random_images({6, 3, 4, 4}, 3, 1e-5f), dtype);  // a variance of 1e-10, eps being 1 %
    const Tensor y = norm(x);
    CHECK(y.dtype() == dtype);
    const auto expected = normalised(x, 1e-12), without = normalised(x, 0.0);
    const auto found = y.to_vector<double>();
    // The last rounding, and those of mean, variance and scale in f32, each of a number below 5.
    const double unit = dtype == DType::f16 ? 0x1p-11 : dtype == DType::bf16 ? 0x1p-8 : 0x1p-24;
    double stray = 0.0, of_eps = 0.0;
    for (std::size_t i = 0; i < found.size(); ++i) {
      stray = std::max(stray, std::abs(found[i] - expected[i]) - unit * std::abs(expected[i]));
      of_eps = std::max(of_eps, std::abs(expected[i] - without[i]));
    }
    CHECK(stray <= 16.0 * 0x1p-24 * 5.0);
    CHECK(of_eps > 1e-3);  // it is seen
  }
}

TEST_CASE("a channel of one value becomes the bias with an eps of 1e-12, and its gradient is finite") {
  for (const DType dtype : {DType::f32, DType::f16}) {
    BatchNorm2d norm({.channels = 2, .momentum = 0.4, .eps = 1e-12, .train_weight = false});
    norm.parameters()[1].detach().fill(0.25);
    const Tensor x = autograd::set_requires_grad(
        Tensor::full({4, 2, 3, 3}, 0.75, {.dtype = dtype, .layout = Layout::channels_last}));
    const Tensor y = norm(x);
    CHECK(y.to_vector<float>() == std::vector<float>(72, 0.25f));
    autograd::backward(y, Tensor::full({4, 2, 3, 3}, 1.0, y.options(Layout::channels_last)));
    CHECK(autograd::grad(x).to_vector<float>() == std::vector<float>(72, 0.0f));  // a mean of ones less itself
    // The running statistics move by the momentum: 0.4 of 0.75, and 0.6 of 1.
    CHECK(norm.named_buffers()[0].second.to_vector<float>()[0] == Approx(0.3));
    CHECK(norm.named_buffers()[1].second.to_vector<float>()[0] == Approx(0.6));
  }
}
