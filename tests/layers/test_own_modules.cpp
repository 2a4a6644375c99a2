// Modules of a user's own: children and parameters that the module owns, functions as modules, lists, apply, freezing.
#include "tandem/autograd/functions.h"
#include "tandem/autograd/grad_mode.h"
#include "tandem/autograd/variable.h"
#include "tandem/layers/layers.h"
#include "tandem/layers/summary.h"
#include "tandem/optim/sgd.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"

#include <map>
#include <sstream>

using namespace tandem;
using namespace tandem::layers;
using namespace tandem::test;

namespace {

/// Children and tensors that members refer to; forward uses all of them.
class Net final : public Module {
 public:
  explicit Net(Initializer& initializer)
      : body_(add_module<Linear>("body", {.in = 4, .out = 3, .relu = true}, initializer)) {
    for (int i = 0; i < 2; ++i) blocks_.add<Linear>({.in = 3, .out = 3}, initializer);
  }

  Tensor forward(const Tensor& input) override {
    Tensor y = relu_(body_(input));
    for (Module& block : blocks_) y = block(y);
    return autograd::add(autograd::scale(y, shift_.item()), slope_);
  }
  std::string describe() const override { return "Net"; }

  using Module::add_module;
  using Module::add_parameter;

 private:
  Linear& body_;
  ReLU& relu_ = add_module<ReLU>("relu");
  ModuleList& blocks_ = add_module<ModuleList>("blocks");
  Tensor& slope_ = add_parameter("slope", Tensor::full({3}, 0.25));
  Tensor& shift_ = add_buffer("shift", Tensor::full({}, 2.0));
};

/// One child of two names.
class Twins final : public Module {
 public:
  Twins() {
    register_module("first", part_);
    register_module("second", part_);
  }
  Tensor forward(const Tensor& input) override { return part_(part_(input)); }
  std::string describe() const override { return "Twins"; }

 private:
  ReLU part_;
};

std::vector<std::string> names_of(const NamedTensors& tensors) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors) names.push_back(name);
  return names;
}

Tensor twice(const Tensor& x) { return autograd::scale(x, 2.0); }

}  // namespace

TEST_CASE("a module refuses no module, and itself, as a part") {
  Initializer initializer(1);
  Net net(initializer);
  CHECK_THAT(error_of([&] { net.add_module("none", std::unique_ptr<ReLU>()); }),
             ContainsText("got no module (a null pointer)"));
  struct Loop final : Module {
    Loop() { register_module("me", *this); }
    Tensor forward(const Tensor& x) override { return x; }
    std::string describe() const override { return "Loop"; }
  };
  CHECK_THAT(error_of([] { Loop(); }), ContainsText("register_module('me'): a module cannot be a part of itself"));
}

TEST_CASE("members that refer to what the module owns have names, modes and gradients") {
  Initializer initializer(1);
  Net net(initializer);
  CHECK(names_of(net.state_dict()) == std::vector<std::string>{"slope", "shift", "body.weight", "body.bias",
                                                               "blocks.0.weight", "blocks.0.bias", "blocks.1.weight",
                                                               "blocks.1.bias"});
  for (const auto& [name, parameter] : net.named_parameters()) {
    CHECK(autograd::requires_grad(parameter));
    CHECK(parameter.storage()->tag() == MemoryTag::parameters);
  }
  const Tensor y = net(Tensor::full({2, 4}, 1.0));
  CHECK(y.shape() == Shape{2, 3});
  autograd::backward(autograd::sum(y));
  for (const auto& [name, parameter] : net.named_parameters()) {
    INFO(name);
    CHECK(autograd::grad(parameter).defined());
  }
  net.to(DType::f64);
  CHECK(net(Tensor::full({2, 4}, 1.0, {.dtype = DType::f64})).dtype() == DType::f64);
  net.eval();
  for (const auto& [name, module] : net.named_modules()) CHECK_FALSE(module->training());
}

TEST_CASE("names that a state dict cannot hold are refused") {
  Initializer initializer(1);
  Net net(initializer);
  CHECK(error_of([&] { net.add_module<ReLU>("relu"); }) ==
        "register: this module has a part of the name 'relu' already; choose another");
  CHECK_THAT(error_of([&] { net.add_module<ReLU>("slope"); }), ContainsText("'slope' already"));
  CHECK_THAT(error_of([&] { net.add_parameter("body", Tensor::zeros({1})); }), ContainsText("'body' already"));
  CHECK(error_of([&] { net.add_module<ReLU>("a.b"); }) ==
        "register: 'a.b' cannot be the name of a part of a module: names are not empty and have no dots");
  CHECK_THAT(error_of([&] { net.add_module<ReLU>(""); }), ContainsText("'' cannot be"));
  CHECK(error_of([&] { net.add_parameter("count", Tensor::zeros({1}, {.dtype = DType::i64})); }) ==
        "add_parameter: 'count' must be a floating tensor that no recorded operation made, got i64[1]; what is not "
        "trained is a buffer");
  CHECK_THAT(error_of([&] { net.add_parameter("nothing", Tensor()); }), ContainsText("got undefined tensor"));
  // What was refused left nothing behind.
  CHECK(net.named_modules().size() == 6);
  CHECK(net.named_parameters().size() == 7);
}

TEST_CASE("functions are modules of a sequence, with a name and a description") {
  Initializer initializer(1);
  Sequential network;
  network.add<Linear>({.in = 2, .out = 2, .relu = true}, initializer);
  network.add(twice);
  network.add([](const Tensor& x) { return autograd::add(x, x); }, "Double");
  network.add("last", [factor = 0.25](const Tensor& x) { return autograd::scale(x, factor); }, "Quarter");
  CHECK(network.size() == 4);
  const auto modules = network.named_modules();
  CHECK(modules[2].first == "2");  // the Linear stands for two
  CHECK(modules[3].first == "3");
  CHECK(modules[4].first == "last");
  CHECK(network[1].describe() == "Lambda");
  CHECK(network[2].describe() == "Double");
  const Tensor x = Tensor::from<float>({1, 2, 3, 4}, {2, 2});
  CHECK(network(x).to_vector<float>() == network[0](x).to_vector<float>());  // 2 * 2 / 4
  CHECK_THAT(summary(network, {2, 2}), ContainsText("Quarter"));
  CHECK(error_of([] { Lambda empty{Lambda::Function()}; }) ==
        "Lambda: got an empty function; give one that makes a tensor of a tensor");
}

TEST_CASE("errors of a function name its place in the network") {
  Sequential network;
  network.add("bad", [](const Tensor& x) { return x.view({7}); });
  CHECK_THAT(error_of([&] { network(Tensor::zeros({2})); }), ContainsText("layer bad: view"));
}

TEST_CASE("a list of modules numbers each by one, and computes nothing itself") {
  Initializer initializer(1);
  ModuleList list;
  list.add<Linear>({.in = 2, .out = 2, .relu = true}, initializer);
  list.add<Linear>({.in = 2, .out = 2}, initializer);
  list.add(twice, "Twice");
  CHECK(list.size() == 3);
  CHECK(names_of(list.named_parameters()) == std::vector<std::string>{"0.weight", "0.bias", "1.weight", "1.bias"});
  CHECK(list.describe() == "ModuleList of 3");
  int seen = 0;
  for (Module& module : list) seen += module.describe() == list[static_cast<std::size_t>(seen)].describe() ? 1 : 0;
  CHECK(seen == 3);
  CHECK(error_of([&] { list(Tensor::zeros({1, 2})); }) ==
        "ModuleList: a list has no forward; call its modules, list[i](x), or use Sequential");
  CHECK(error_of([&] { list[3]; }) == "ModuleList of 3: there is no module 3; they are numbered from 0");
  CHECK(error_of([&] { list.add(std::unique_ptr<Linear>()); }) == "ModuleList of 3: module '3' is a null pointer");
}

TEST_CASE("modules are printed as a tree of their children") {
  Initializer initializer(1);
  const Net net(initializer);
  const std::string tree =
      "Net\n"
      "  (body): LinearReLU(4, 3)\n"
      "  (relu): ReLU\n"
      "  (blocks): ModuleList of 2\n"
      "    (0): Linear(3, 3)\n"
      "    (1): Linear(3, 3)";
  CHECK(to_string(net) == tree);
  std::ostringstream stream;
  stream << net;
  CHECK(stream.str() == tree);
  const Module& module = net;
  CHECK(fmt::format("{}", module) == tree);
  CHECK(error_of([&] { fail("got {}", net); }) == "got Net");  // one line
  CHECK(fmt::format("{:>6}|{}", ReLU(), Linear({.in = 2, .out = 1}, initializer)) == "  ReLU|Linear(2, 1)");
}

TEST_CASE("apply visits children before their parents, each module once") {
  Initializer initializer(1);
  Net net(initializer);
  std::vector<std::string> visited;
  net.apply([&](Module& module) { visited.push_back(module.describe()); });
  CHECK(visited.size() == 6);
  CHECK(visited.back() == "Net");
  const auto place = [&](std::string_view what) { return std::find(visited.begin(), visited.end(), what); };
  CHECK(place("Linear(3, 3)") < place("ModuleList of 2"));
  Twins twins;
  std::map<const Module*, int> calls;
  twins.apply([&](Module& module) { ++calls[&module]; });
  CHECK(twins.named_modules().size() == 2);
  CHECK(calls.size() == 2);
  for (const auto& [module, count] : calls) CHECK(count == 1);
  // A new start for the linear layers.
  const autograd::NoGrad no_grad;
  net.apply([](Module& module) {
    if (dynamic_cast<Linear*>(&module) == nullptr) return;
    for (const Tensor& parameter : module.parameters()) parameter.fill(0.5);
  });
  for (const auto& [name, parameter] : net.named_parameters())
    CHECK(parameter.to_vector<float>().front() == (name == "slope" ? 0.25f : 0.5f));
}

TEST_CASE("frozen parameters get no gradient and stay as they are") {
  Initializer initializer(1);
  Net net(initializer);
  const Tensor x = Tensor::full({2, 4}, 1.0);
  optim::SGD optimizer(net.parameters(), {.lr = 0.1, .momentum = 0.9, .weight_decay = 0.1});
  const auto step = [&] {
    optimizer.zero_grad();
    autograd::backward(autograd::sum(net(x)));
    optimizer.step();
  };
  step();
  autograd::backward(autograd::sum(net(x)));  // a gradient is there when it is frozen
  net.requires_grad("blocks", false);
  net.requires_grad("body.bias", false);
  const auto values = [&] {
    std::map<std::string, std::vector<float>> result;
    for (const auto& [name, parameter] : net.named_parameters()) result[name] = parameter.to_vector<float>();
    return result;
  };
  const auto before = values();
  optimizer.step();
  step();
  for (const auto& [name, after] : values()) {
    INFO(name);
    const bool frozen = name.starts_with("blocks.") || name == "body.bias";
    CHECK((after == before.at(name)) == frozen);
  }
  net.to(DType::f64);  // marks stay
  for (const auto& [name, parameter] : net.named_parameters())
    CHECK(autograd::requires_grad(parameter) == !(name.starts_with("blocks.") || name == "body.bias"));
  net.requires_grad();
  for (const Tensor& parameter : net.parameters()) CHECK(autograd::requires_grad(parameter));
  net.requires_grad(false);
  for (const Tensor& parameter : net.parameters()) CHECK_FALSE(autograd::requires_grad(parameter));
  CHECK_FALSE(autograd::requires_grad(net(Tensor::full({1, 4}, 1.0, {.dtype = DType::f64}))));
}

TEST_CASE("parameters are found by patterns of their names") {
  Initializer initializer(1);
  const Net net(initializer);
  const NamedTensors named = net.named_parameters();
  for (const std::string pattern : {"*", "*.bias", "blocks.*", "blocks.?.weight", "body.[bw]*", "body.bias"}) {
    CAPTURE(pattern);
    std::vector<std::string> expected;  // by other means
    for (const auto& [name, tensor] : named) {
      const bool fits = pattern == "*"          ? true
                        : pattern == "*.bias"   ? name.ends_with(".bias")
                        : pattern == "blocks.*" ? name.starts_with("blocks.")
                        : pattern == "blocks.?.weight"
                            ? name.starts_with("blocks.") && name.size() == 15 && name.ends_with(".weight")
                        : pattern == "body.[bw]*" ? name.starts_with("body.b") || name.starts_with("body.w")
                                                  : name == pattern;
      if (fits) expected.push_back(name);
    }
    std::vector<std::string> found;
    for (const Tensor& parameter : net.parameters(pattern))
      for (const auto& [name, tensor] : named)
        if (tensor.is_same(parameter)) found.push_back(name);
    CHECK(found == expected);
    CHECK_FALSE(expected.empty());
  }
  CHECK(error_of([&] { return net.parameters("block.0.weight"); }) ==
        "'block.0.weight' matches no parameter of this Net: did you mean 'blocks.0.weight'? (its parameters: slope, "
        "body.weight, body.bias, blocks.0.weight, blocks.0.bias, blocks.1.weight, blocks.1.bias)");
}

TEST_CASE("freezing what is not there is refused, with the nearest name") {
  Initializer initializer(1);
  Net net(initializer);
  CHECK(error_of([&] { net.requires_grad("block", false); }) ==
        "requires_grad: 'block' is neither a module nor a parameter of this Net: did you mean 'blocks'?; "
        "named_modules() and named_parameters() list them");
  CHECK_THAT(error_of([&] { net.requires_grad("", false); }), ContainsText("'' is neither"));
  CHECK_THAT(error_of([&] { net.requires_grad("shift", false); }), ContainsText("neither"));  // a buffer
}

TEST_CASE("a tensor that is registered as a parameter is trained") {
  class Scale final : public Module {
   public:
    explicit Scale(Tensor scale) : scale_(std::move(scale)) { register_parameter("scale", scale_); }
    Tensor forward(const Tensor& input) override { return autograd::mul(input, scale_); }
    std::string describe() const override { return "Scale"; }

   private:
    Tensor scale_;
  };
  Scale scale(Tensor::full({2}, 0.5));
  CHECK(autograd::requires_grad(scale.parameters().at(0)));
  autograd::backward(autograd::sum(scale(Tensor::full({3, 2}, 2.0))));
  CHECK(autograd::grad(scale.parameters()[0]).to_vector<float>() == std::vector<float>{6, 6});
  CHECK(
      error_of([] { Scale(Tensor::full({2}, 1.0, {.dtype = DType::i64})); }) ==
      "register_parameter: 'scale' must be a floating tensor that no recorded operation made, got i64[2]; what is not "
      "trained is a buffer");
  const Tensor computed = autograd::exp(scale.parameters()[0]);
  CHECK_THAT(error_of([&] { Scale{computed}; }), ContainsText("register_parameter: 'scale' must be a floating tensor"));
}

TEST_CASE("modules of several names are listed once, and none is a part of itself") {
  Twins twins;
  std::vector<std::string> names;
  for (const auto& [name, module] : twins.named_modules()) names.push_back(name);
  CHECK(names == std::vector<std::string>{"", "first"});
  twins.requires_grad("second", false);  // any name will do
  struct Knot final : Module {
    Tensor forward(const Tensor& input) override { return input; }
    std::string describe() const override { return "Knot"; }
    using Module::register_module;
  } a, b, c;
  a.register_module("b", b);
  b.register_module("c", c);
  CHECK(error_of([&] { c.register_module("a", a); }) == "register_module('a'): a module cannot be a part of itself");
  CHECK(error_of([&] { c.register_module("c", c); }) == "register_module('c'): a module cannot be a part of itself");
  CHECK(c.named_modules().size() == 1);
}
