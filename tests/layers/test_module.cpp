// Module: names, modes, casts, state dicts, error context.
#include "tandem/autograd/precision.h"
#include "tandem/autograd/variable.h"
#include "tandem/kernels/activation/activation.h"
#include "tandem/layers/layers.h"
#include "tandem/layers/safetensors.h"
#include "tandem/layers/summary.h"
#include "tests/support/catch.h"
#include "tests/support/cuda_device.h"
#include "tests/support/error_of.h"
#include "tests/support/temporary_directory.h"

using namespace tandem;
using namespace tandem::layers;
using namespace tandem::test;

namespace {

/// features: conv, BN+ReLU, pool, flatten; head: linear 8 -> 3. Takes [N,1,4,4].
std::unique_ptr<Sequential> small_network(std::uint64_t seed = 1) {
  Initializer initializer(seed);
  auto features = std::make_unique<Sequential>();
  features->add<Conv2d>({.in = 1, .out = 2, .kernel = {3, 3}, .padding = {1, 1}}, initializer);
  features->add<BatchNorm2d>({.channels = 2, .activation = Activation::relu});
  features->add<MaxPool2d>(2);
  features->add<Flatten>();
  auto network = std::make_unique<Sequential>();
  network->add("features", std::move(features));
  network->add("head", std::make_unique<Linear>(LinearOptions{.in = 8, .out = 3}, initializer));
  return network;
}

std::vector<std::string> names_of(const NamedTensors& tensors) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors) names.push_back(name);
  return names;
}

NamedTensors clone_of(const NamedTensors& tensors) {
  NamedTensors result;
  for (const auto& [name, tensor] : tensors) result.emplace_back(name, tensor.clone());
  return result;
}

}  // namespace

TEST_CASE("a module without forward() says so where it is called with one tensor") {
  class TwoInputs final : public Module {
   public:
    std::string describe() const override { return "TwoInputs"; }
  };
  TwoInputs model;
  CHECK_THROWS_WITH(model(Tensor::zeros({1})), ContainsText("TwoInputs has no forward(input): override it"));
}

TEST_CASE("parameters and buffers carry PyTorch's names in PyTorch's order") {
  const auto network = small_network();
  CHECK(names_of(network->named_parameters()) == std::vector<std::string>{"features.0.weight", "features.0.bias",
                                                                          "features.1.weight", "features.1.bias",
                                                                          "head.weight", "head.bias"});
  CHECK(names_of(network->named_buffers()) == std::vector<std::string>{"features.1.running_mean",
                                                                       "features.1.running_var",
                                                                       "features.1.num_batches_tracked"});
  CHECK(names_of(network->state_dict()) ==
        std::vector<std::string>{"features.0.weight", "features.0.bias", "features.1.weight", "features.1.bias",
                                 "features.1.running_mean", "features.1.running_var", "features.1.num_batches_tracked",
                                 "head.weight", "head.bias"});
  CHECK(network->parameter_count() == 2 * 9 + 2 + 2 + 2 + 8 * 3 + 3);
  std::vector<std::string> modules;
  for (const auto& [name, module] : network->named_modules()) modules.push_back(name);
  CHECK(modules ==
        std::vector<std::string>{"", "features", "features.0", "features.1", "features.3", "features.4", "head"});
}

TEST_CASE("parameters are tagged, channels-last leaves that want gradients; buffers want none") {
  const auto network = small_network();
  for (const auto& [name, parameter] : network->named_parameters()) {
    INFO(name);
    CHECK(autograd::requires_grad(parameter));
    CHECK(autograd::is_leaf(parameter));
    CHECK(parameter.is_dense(Layout::channels_last));
    CHECK(parameter.storage()->tag() == MemoryTag::parameters);
  }
  for (const auto& [name, buffer] : network->named_buffers()) {
    CHECK_FALSE(autograd::requires_grad(buffer));
    CHECK(buffer.storage()->tag() == MemoryTag::parameters);
  }
  for (const auto& [name, tensor] : network->state_dict()) CHECK_FALSE(autograd::requires_grad(tensor));
}

TEST_CASE("train and eval reach every descendant") {
  const auto network = small_network();
  CHECK(network->training());
  network->eval();
  for (const auto& [name, module] : network->named_modules()) CHECK_FALSE(module->training());
  network->train();
  for (const auto& [name, module] : network->named_modules()) CHECK(module->training());
}

TEST_CASE("to casts floating tensors and keeps values, gradients wanted and the batch counter") {
  const auto network = small_network();
  const auto before = clone_of(network->state_dict());
  network->to(DType::f64);
  const auto after = network->state_dict();
  for (std::size_t i = 0; i < before.size(); ++i) {
    INFO(before[i].first);
    CHECK(after[i].second.dtype() == (before[i].second.dtype() == DType::i64 ? DType::i64 : DType::f64));
    CHECK(after[i].second.to_vector<double>() == before[i].second.to_vector<double>());
    CHECK(after[i].second.storage()->tag() == MemoryTag::parameters);
  }
  for (const Tensor& parameter : network->parameters()) {
    CHECK(autograd::requires_grad(parameter));
    CHECK(autograd::is_leaf(parameter));
    CHECK(parameter.is_dense(Layout::channels_last));
  }
  CHECK((*network)(Tensor::zeros({2, 1, 4, 4}, {.dtype = DType::f64})).dtype() == DType::f64);
  CHECK_THROWS_WITH(network->to(DType::i32), ContainsText("not i32"));
}

TEST_CASE("half precision is for weights of products, not for batch norm") {
  const auto network = small_network();
  network->set_precision(autograd::Precision::bf16);
  for (const auto& [name, tensor] : network->state_dict()) {
    const bool norm = name.starts_with("features.1.");
    CHECK(tensor.dtype() == (name == "features.1.num_batches_tracked" ? DType::i64 : norm ? DType::f32 : DType::bf16));
    CHECK(tensor.storage()->tag() == MemoryTag::parameters);
  }
  for (const Tensor& parameter : network->parameters()) CHECK(autograd::requires_grad(parameter));
  const Tensor output = (*network)(Tensor::full({2, 1, 4, 4}, 0.5, {.layout = Layout::channels_last}));
  CHECK(output.dtype() == DType::bf16);
  network->set_precision(autograd::Precision::fp32);
  for (const auto& [name, tensor] : network->named_parameters()) CHECK(tensor.dtype() == DType::f32);
}

TEST_CASE("a state dict moves weights from one network to another") {
  const auto from = small_network(1), to = small_network(2);
  REQUIRE(from->parameters().front().to_vector<float>() != to->parameters().front().to_vector<float>());
  const Tensor kept = to->parameters().front();
  to->load_state_dict(from->state_dict());
  for (std::size_t i = 0; i < from->state_dict().size(); ++i) {
    CHECK(to->state_dict()[i].second.to_vector<double>() == from->state_dict()[i].second.to_vector<double>());
  }
  CHECK(to->parameters().front().is_same(kept));  // in place: optimizers stay valid

  SECTION("the elements are copies") {
    from->parameters().front().detach().fill(9.0);
    CHECK(kept.to_vector<float>().front() != 9.0f);
  }
  SECTION("floating dtypes are cast") {
    from->to(DType::f64);
    from->parameters().front().detach().fill(0.5);
    to->load_state_dict(from->state_dict());
    CHECK(kept.dtype() == DType::f32);
    CHECK(kept.to_vector<float>().front() == 0.5f);
  }
}

TEST_CASE("a state dict that does not fit is refused as a whole, with all that is wrong") {
  const auto network = small_network();
  const auto before = clone_of(network->state_dict());
  NamedTensors state = clone_of(small_network(2)->state_dict());
  std::string message;
  const auto load = [&](bool strict = true) {
    message.clear();
    try {
      network->load_state_dict(state, strict);
    } catch (const Error& error) {
      message = error.what();
    }
  };
  SECTION("missing, unexpected and mis-shaped at once") {
    state.erase(state.begin());
    state.emplace_back("extra.weight", Tensor::zeros({1}));
    state[0].second = Tensor::zeros({3});
    load();
    CHECK_THAT(message, ContainsText("missing: features.0.weight"));
    CHECK_THAT(message, ContainsText("unexpected: extra.weight"));
    CHECK_THAT(message, ContainsText("features.0.bias is [3], the model has [2]"));
    CHECK_THAT(message, ContainsText(" (LoadStateDictOptions{.strict = false, .ignore_mismatched = true} would pass "));
  }
  SECTION("not strict passes over missing and unexpected, not over shapes") {
    state[0].first = "renamed";
    state.back().second = Tensor::zeros({7});
    load(false);
    CHECK_THAT(message, ContainsText("head.bias is [7], the model has [3]"));
    CHECK(message.find("renamed") == std::string::npos);
    CHECK_THAT(message, ContainsText(" (LoadStateDictOptions{.ignore_mismatched = true} would pass over them)"));
  }
  SECTION("the exception lists what does not fit") {
    state[0].first = "renamed";
    try {
      network->load_state_dict(state);
      FAIL("accepted");
    } catch (const IncompatibleStateError& error) {
      CHECK(error.refused().unexpected_keys == std::vector<std::string>{"renamed"});
      CHECK(error.refused().missing_keys == std::vector<std::string>{"features.0.weight"});
      CHECK(error.refused().mismatched_keys.empty());
    }
  }
  SECTION("integers are not weights") {
    state.back().second = Tensor::zeros({3}, {.dtype = DType::i32});
    load();
    CHECK_THAT(message, ContainsText("head.bias holds i32, the model f32"));
  }
  SECTION("one name twice") {
    state.push_back(state.front());
    load();
    CHECK_THAT(message, ContainsText("features.0.weight is given twice"));
  }
  SECTION("undefined tensor") {
    state[0].second = Tensor();
    load();
    CHECK_THAT(message, ContainsText("undefined"));
  }
  SECTION("many names are cut") {
    state.clear();
    load();
    CHECK_THAT(message, ContainsText("and 3 more"));
  }
  CHECK(message.find('\n') == std::string::npos);
  const auto after = network->state_dict();
  for (std::size_t i = 0; i < before.size(); ++i) {
    CHECK(after[i].second.to_vector<double>() == before[i].second.to_vector<double>());
  }
}

TEST_CASE("not strict loads what is there") {
  const auto network = small_network();
  network->load_state_dict({{"head.bias", Tensor::full({3}, 4)}, {"other", Tensor::zeros({1})}}, false);
  CHECK(network->parameters().back().to_vector<float>() == std::vector<float>(3, 4.0f));
}

TEST_CASE("a partial load says what it left") {
  const auto network = small_network();
  const auto nothing = network->load_state_dict(network->state_dict());
  CHECK(nothing.empty());
  CHECK(to_string(nothing).empty());

  NamedTensors state = clone_of(small_network(2)->state_dict());
  state[0].second = Tensor::zeros({3});
  state[1].first = "new\nname";
  state.back().second = Tensor::full({3}, 4);
  const auto before = clone_of(network->state_dict());
  CHECK_THROWS_WITH(network->load_state_dict(state, false), ContainsText("features.0.weight is [3]"));
  const auto left = network->load_state_dict(state, {.strict = false, .ignore_mismatched = true});
  CHECK(left.missing_keys == std::vector<std::string>{"features.0.bias"});
  CHECK(left.unexpected_keys == std::vector<std::string>{"new\nname"});
  REQUIRE(left.mismatched_keys.size() == 1);
  CHECK(left.mismatched_keys[0].name == "features.0.weight");
  CHECK(
      to_string(left) ==
      "missing: features.0.bias; unexpected: \"new\\nname\"; wrong shape or dtype: features.0.weight is [3], the model "
      "has [2, 1, 3, 3]");
  CHECK(network->parameters().back().to_vector<float>() == std::vector<float>(3, 4.0f));
  for (const std::size_t i : {0, 1})  // what was left is what it was
    CHECK(network->state_dict()[i].second.to_vector<float>() == before[i].second.to_vector<float>());
  // Strict still refuses names.
  CHECK(error_of([&] { network->load_state_dict(state, {.ignore_mismatched = true}); }) ==
        "load_state_dict: the tensors do not fit this model; missing: features.0.bias; unexpected: \"new\\nname\" "
        "(LoadStateDictOptions{.strict = false} would pass over them)");
}

TEST_CASE("errors of a forward pass name the layer") {
  const auto network = small_network();
  CHECK_THROWS_WITH((*network)(Tensor::zeros({2, 3, 4, 4})), ContainsText("layer features.0: "));
  CHECK_THROWS_WITH((*network)(Tensor::zeros({2, 1, 8, 8})), ContainsText("layer head: "));
}

TEST_CASE("zero_grad drops gradients, and observers see outputs") {
  const auto network = small_network();
  for (const Tensor& parameter : network->parameters()) autograd::set_grad(parameter, zeros_like(parameter));
  network->zero_grad();
  for (const Tensor& parameter : network->parameters()) CHECK_FALSE(autograd::grad(parameter).defined());

  int calls = 0;
  Shape seen;
  network->named_modules()[1].second->set_observer([&](const Tensor& output) {
    ++calls;
    seen = output.shape();
  });
  (*network)(Tensor::zeros({5, 1, 4, 4}));
  CHECK(calls == 1);
  CHECK(seen == Shape{5, 8});
}

TEST_CASE("a module moves to a device and back, with its state and its marks", "[cuda]") {
  if (!has_gpu()) return;
  const auto network = small_network(), there = small_network();
  autograd::set_requires_grad(there->named_parameters().back().second, false);
  const std::string on_host = summary(*there, {2, 1, 4, 4});
  there->to(kGpu);
  for (const auto& [name, parameter] : there->named_parameters()) {
    INFO(name);
    CHECK(parameter.device() == kGpu);
    CHECK(parameter.storage()->tag() == MemoryTag::parameters);
    CHECK(autograd::requires_grad(parameter) == (name != "head.bias"));
    CHECK(autograd::is_leaf(parameter));
  }
  for (const auto& [name, buffer] : there->named_buffers())
    CHECK(buffer.device() == (is_floating(buffer.dtype()) ? kGpu : Device{}));
  CHECK(summary(*there, {2, 1, 4, 4}) == on_host);
  const auto same_state = [&](const Module& other) {
    const NamedTensors expected = network->state_dict(), actual = other.state_dict();
    for (std::size_t i = 0; i < expected.size(); ++i) {
      INFO(expected[i].first);
      CHECK(actual[i].second.strides() == expected[i].second.strides());
      CHECK(actual[i].second.to_vector<float>() == expected[i].second.to_vector<float>());
    }
  };
  same_state(*there);

  // Files hold the same whatever the device, and fit either.
  const TemporaryDirectory directory;
  write_safetensors(directory / "weights.safetensors", there->state_dict(), {});
  const auto other = small_network(2);
  other->to(kGpu);
  other->load_state_dict(read_safetensors(directory / "weights.safetensors").tensors);
  same_state(*other);
  there->to(Device{});
  same_state(*there);
  const Tensor parameter = there->parameters().front();
  there->to(Device{});
  CHECK(there->parameters().front().is_same(parameter));
}

TEST_CASE("a module does not move to a device that is not there") {
  const auto network = small_network();
  CHECK_THROWS_AS(network->to(Device{DeviceType::cuda, cuda_device_count()}), Error);
  CHECK(network->parameters().front().device() == Device{});
}
