// The networks of the CIFAR-10 speed runs: names, shapes, sizes, and what is computed in which order.
#include "tandem/autograd/functions.h"
#include "tandem/autograd/variable.h"
#include "tandem/kernels/activation/activation.h"
#include "tandem/layers/layers.h"
#include "tandem/layers/models/models.h"
#include "tandem/layers/summary.h"
#include "tests/kernels/image_support.h"
#include "tests/layers/model_support.h"
#include "tests/support/catch.h"

#include <cmath>
#include <set>
#include <tuple>

using namespace tandem;
using namespace tandem::layers;
using namespace tandem::test;

namespace {

/// Of the model's state.
Tensor tensor_of(const Module& model, std::string_view wanted) {
  for (const auto& [name, tensor] : model.state_dict())
    if (name == wanted) return tensor;
  return {};
}

/// The elements of those parameters that `counts`.
template <typename Counts>
std::int64_t elements(const Module& model, const Counts& counts) {
  std::int64_t sum = 0;
  for (const auto& [name, parameter] : model.named_parameters())
    if (counts(name, parameter)) sum += parameter.numel();
  return sum;
}

std::int64_t trained_elements(const Module& model) {
  return elements(model,
                  [](const std::string&, const Tensor& parameter) { return autograd::requires_grad(parameter); });
}

/// Of convolutions and the linear layer, the frozen one among them.
std::int64_t weights_of_products(const Module& model) {
  return elements(model, [](const std::string& name, const Tensor&) {
    return name.ends_with(".weight") && name.find("norm") == std::string::npos;
  });
}

}  // namespace

TEST_CASE("the airbench networks have the names of their scripts, and the documented sizes") {
  std::set<std::string> expected{"0[24, 3, 2, 2]", "7[10, 256]"};
  for (const auto& [group, in, out] : {std::tuple{2, 24, 64}, std::tuple{3, 64, 256}, std::tuple{4, 256, 256}}) {
    expected.insert(fmt::format("{}.conv1[{}, {}, 3, 3]", group, out, in));
    expected.insert(fmt::format("{0}.conv2[{1}, {1}, 3, 3]", group, out));
    for (const int norm : {1, 2}) expected.insert(fmt::format("{}.norm{}[{}]", group, norm, out));
  }
  const auto of_94 = make_model({.name = "airbench94"}), of_95 = make_model({.name = "airbench95"}),
             of_96 = make_model({.name = "airbench96"});
  CHECK(weights_of(*of_94) == expected);
  const NamedTensors state = of_94->state_dict();
  std::vector<std::string> names;
  for (const auto& [name, tensor] : state) names.push_back(name);
  CHECK(std::vector<std::string>(names.begin(), names.begin() + 9) ==
        std::vector<std::string>{"0.weight", "0.bias", "2.conv1.weight", "2.norm1.weight", "2.norm1.bias",
                                 "2.norm1.running_mean", "2.norm1.running_var", "2.norm1.num_batches_tracked",
                                 "2.conv2.weight"});
  CHECK(names.back() == "7.weight");
  CHECK(state.size() == 2 + 3 * 2 * 6 + 1);

  CHECK(weights_of_products(*of_94) == 1'970'464);  // with the frozen 288
  CHECK(trained_elements(*of_94) == 1'971'352);
  CHECK(of_94->parameter_count() == 1'971'352 + 288 + 1'152);  // frozen: whitening, and the weights of batch norm
  CHECK(weights_of_products(*of_95) == 4'602'912);
  CHECK(weights_of_products(*of_96) == 9'912'608);
  CHECK(trained_elements(*of_95) == 4'602'912 - 288 + 24 + 2 * (128 + 384 + 384));
  CHECK(trained_elements(*of_96) == 9'912'608 - 288 + 24 + 3 * (128 + 384 + 512));
  CHECK(of_96->named_buffers().size() == 27);

  // Of products: 31x31 pixels before the first pool, then 15, 7 and 3 squared behind each.
  const auto work = [](std::array<double, 3> channels, bool residual) {
    double sum = 31.0 * 31 * 24 * 12, in = 24.0, side = 31.0;
    for (const double out : channels) {
      sum += side * side * out * in * 9.0;
      side = std::floor(side / 2.0);
      sum += (residual ? 2.0 : 1.0) * side * side * out * out * 9.0;
      in = out;
    }
    return 2.0 * (sum + 10.0 * in);
  };
  CHECK(summarize(*of_94, {1, 3, 32, 32}).flops == work({64, 256, 256}, false));
  CHECK(summarize(*of_95, {1, 3, 32, 32}).flops == work({128, 384, 384}, false));
  CHECK(summarize(*of_96, {1, 3, 32, 32}).flops == work({128, 384, 512}, true));
  CHECK(std::lround(work({64, 256, 256}, false) / 1e5) == 2363);  // 236.3 million
  CHECK(std::lround(work({128, 384, 384}, false) / 1e5) == 6031);
  CHECK(std::lround(work({128, 384, 512}, true) / 1e5) == 9039);
}

TEST_CASE("the airbench networks take a width, other channels and sizes, and begin with identity filters") {
  const auto model =
      make_model({.name = "airbench94", .in_channels = 1, .image_size = 28, .classes = 7, .width = 0.55});
  CHECK(weights_of(*model) == std::set<std::string>{"0[8, 1, 2, 2]", "2.conv1[35, 8, 3, 3]", "2.norm1[35]",
                                                    "2.conv2[35, 35, 3, 3]", "2.norm2[35]", "3.conv1[141, 35, 3, 3]",
                                                    "3.norm1[141]", "3.conv2[141, 141, 3, 3]", "3.norm2[141]",
                                                    "4.conv1[141, 141, 3, 3]", "4.norm1[141]",
                                                    "4.conv2[141, 141, 3, 3]", "4.norm2[141]", "7[7, 141]"});
  for (const auto& [name, parameter] : model->named_parameters()) {
    if (!name.ends_with("conv1.weight") && !name.ends_with("conv2.weight")) continue;
    INFO(name);
    const auto values = parameter.to_vector<float>();
    const auto filter = static_cast<std::size_t>(parameter.size(1)) * 9;
    for (std::size_t k = 0; k < static_cast<std::size_t>(parameter.size(1)); ++k)
      for (std::size_t i = 0; i < filter; ++i) REQUIRE(values[k * filter + i] == (i == k * 9 + 4 ? 1.0f : 0.0f));
  }
  // Of images from 9 on; the last pool takes all that is left, 7x7 of 64.
  for (const std::int64_t size : {9, 64}) {
    const auto other = make_model({.name = "airbench96", .image_size = size, .width = 0.05});
    CHECK((*other)(random_images({2, 3, size, size}, 9)).shape() == Shape{2, 10});
  }
  // Batch norms: eps 1e-12, and 0.4 or 0.1 of each batch in the running statistics.
  for (const auto& [name, momentum] : {std::pair("airbench94", 0.4), std::pair("airbench96", 0.1)}) {
    const auto network = make_model({.name = name, .width = 0.05});
    (*network)(Tensor::full({2, 3, 32, 32}, 0.5, {.layout = Layout::channels_last}));
    for (const auto& [buffer_name, buffer] : network->named_buffers()) {
      if (buffer_name != "2.norm1.running_var") continue;
      CHECK(buffer.to_vector<double>()[0] == Approx(1.0 - momentum));  // the identity of a constant has no variance
    }
  }
}

TEST_CASE("a group of airbench96 adds its input behind the first activation to the last but one") {
  const auto model = make_model({.name = "airbench96", .width = 0.05, .seed = 3});
  model->eval();
  const Tensor x = random_images({2, 3, 32, 32}, 9);
  const auto modules = model->named_modules();
  const auto part = [&](const std::string& name) -> Module& {
    return *std::ranges::find(modules, name, [](const auto& named) { return named.first; })->second;
  };
  const Tensor input = part("1")(part("0")(x));
  const Tensor first = part("2.norm1")(part("2.pool")(part("2.conv1")(input)));
  const Tensor second = part("2.norm2")(part("2.conv2")(first));
  const Tensor last = autograd::gelu(autograd::add(part("2.norm3")(part("2.conv3")(second)), first));
  CHECK(part("2")(input).to_vector<float>() == last.to_vector<float>());
}

// By functions alone: convolution, pool, batch norm, and GELU as an op of its own.
TEST_CASE("a group of airbench94 is convolution, pool, batch norm, GELU, convolution, batch norm, GELU") {
  const bool training = GENERATE(true, false);
  const DType dtype = GENERATE(DType::f64, DType::f32);
  INFO((training ? "training, " : "evaluation, ") << name_of(dtype));
  const auto model = make_model({.name = "airbench94", .width = 0.05, .seed = 3});
  model->to(dtype);
  model->train(training);
  const auto modules = model->named_modules();
  const auto part = [&](const std::string& name) -> Module& {
    return *std::ranges::find(modules, name, [](const auto& named) { return named.first; })->second;
  };
  const Tensor input =
      autograd::cast(random_images({2, 24, 11, 11}, 9), dtype);  // of the whitening layer's 24 channels
  const auto state_of = [&](const std::string& name) {
    const NamedTensors state = part(name).state_dict();
    std::vector<Tensor> tensors;
    for (const auto& [unused, tensor] : state) tensors.push_back(tensor.clone());
    return tensors;
  };
  const auto convolved = [&](const std::string& name, const Tensor& x) {
    return autograd::conv2d(x, part(name).parameters()[0].detach(), {}, {.padding = 1});
  };
  const auto normalised = [&](const std::string& name, const Tensor& x) {
    const std::vector<Tensor> state = state_of(name);  // weight, bias, running mean and variance, number of batches
    return autograd::gelu(autograd::batch_norm(x, state[0], state[1], state[2], state[3],
                                               {.training = training, .momentum = 0.4, .eps = 1e-12}));
  };
  const Tensor first = normalised("2.norm1", autograd::max_pool2d(convolved("2.conv1", input), {}));
  const Tensor second = normalised("2.norm2", convolved("2.conv2", first));
  CHECK(part("2")(input).detach().to_vector<double>() == second.to_vector<double>());
  std::vector<std::string> names;
  for (const auto& [name, tensor] : part("2").state_dict()) names.push_back(name);
  CHECK(names == std::vector<std::string>{"conv1.weight", "norm1.weight", "norm1.bias", "norm1.running_mean",
                                          "norm1.running_var", "norm1.num_batches_tracked", "conv2.weight",
                                          "norm2.weight", "norm2.bias", "norm2.running_mean", "norm2.running_var",
                                          "norm2.num_batches_tracked"});
}

TEST_CASE("a unit head has a deviation of 1, and logits are divided by its inputs") {
  const auto plain = make_model({.name = "airbench94", .width = 0.05, .seed = 3}),
             unit = make_model({.name = "airbench94", .width = 0.05, .unit_head = true, .seed = 3});
  const std::vector<double> drawn = tensor_of(*plain, "7.weight").to_vector<double>(),
                            scaled = tensor_of(*unit, "7.weight").to_vector<double>();
  double mean = 0.0, squares = 0.0;
  const auto count = static_cast<double>(drawn.size());
  for (const double value : drawn) mean += value / count;
  for (const double value : drawn) squares += (value - mean) * (value - mean);
  const double deviation = std::sqrt(squares / (count - 1.0));
  for (std::size_t i = 0; i < drawn.size(); ++i) CHECK(scaled[i] == Approx(drawn[i] / deviation));
  for (Module* const model : {plain.get(), unit.get()}) model->eval();
  const Tensor x = random_images({2, 3, 32, 32}, 9);
  const auto expected = (*plain)(x).to_vector<double>(), logits = (*unit)(x).to_vector<double>();
  const auto inputs = static_cast<double>(tensor_of(*plain, "7.weight").size(1));
  for (std::size_t i = 0; i < logits.size(); ++i)
    CHECK(logits[i] == Approx(9.0 * expected[i] / deviation / inputs).margin(1e-6));
  CHECK_THROWS_AS(set_unit_deviation(Tensor::full({4}, 2.0)), Error);
  CHECK_THROWS_AS(set_unit_deviation(Tensor::full({1}, 2.0)), Error);
}

TEST_CASE("airbench94 takes SiLU, a momentum of its batch norms and a drawn bias of its whitening") {
  const auto model = make_model(
      {.name = "airbench94", .width = 0.05, .activation = "silu", .draw_whitening_bias = true, .norm_momentum = 0.25});
  for (const auto& [name, module] : model->named_modules()) {
    const auto* const norm = dynamic_cast<const BatchNorm2d*>(module);
    if (norm == nullptr) continue;
    CHECK(norm->options().activation == Activation::silu);
    CHECK(norm->options().momentum == 0.25);
  }
  CHECK(model->named_modules()[2].second->describe() == "GELU");
  CHECK(whitening_layers(*model)[0]->bias().to_vector<float>() != std::vector<float>(24, 0.0f));
}

TEST_CASE("airbench94 without whitening and identity filters begins as PyTorch's layers do") {
  const auto full = make_model({.name = "airbench94", .width = 0.1, .seed = 5}),
             plain = make_model(
                 {.name = "airbench94", .width = 0.1, .whitening = false, .identity_filters = false, .seed = 5});
  CHECK(whitening_layers(*plain).empty());
  const auto expected = full->state_dict(), own = plain->state_dict();
  REQUIRE(own.size() == expected.size());
  for (std::size_t i = 0; i < own.size(); ++i) {
    CHECK(own[i].first == expected[i].first);
    CHECK(own[i].second.shape() == expected[i].second.shape());
  }
  const auto trained = [](const auto&, const Tensor& parameter) { return autograd::requires_grad(parameter); };
  CHECK(elements(*plain, trained) == elements(*full, trained) + 24 * 3 * 2 * 2);
  for (const auto& [name, tensor] : own) {
    if (tensor.rank() != 4) continue;
    CAPTURE(name);
    const double bound = 1.0 / std::sqrt(static_cast<double>(tensor.numel() / tensor.size(0)));
    const std::vector<double> values = tensor.to_vector<double>();
    CHECK(std::ranges::all_of(values, [&](double value) { return std::abs(value) <= bound && value != 0.0; }));
  }
  const Tensor x = random_images({2, 3, 32, 32}, 9);
  CHECK((*plain)(x).shape() == Shape{2, 10});
  const auto half = make_model({.name = "airbench94", .width = 0.1, .whitening = false, .seed = 5});
  CHECK(tensor_of(*half, "2.conv1.weight").to_vector<double>()[4] == 1.0);  // the centre of the first filter
}
