// What users read of modules, their parts and their state, and of layers' options.
#include "tandem/autograd/functions.h"
#include "tandem/autograd/variable.h"
#include "tandem/layers/layers.h"
#include "tandem/layers/models/models.h"
#include "tandem/layers/summary.h"
#include "tests/errors/bad_calls.h"

#include <cmath>

using namespace tandem;
using namespace tandem::layers;
using namespace tandem::test;

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// A module whose constructor does as it is told; its forward is not written.
class Own final : public Module {
 public:
  explicit Own(const std::function<void(Own&)>& make) { make(*this); }
  std::string describe() const override { return "Own"; }

  using Module::add_buffer, Module::add_parameter, Module::register_buffer, Module::register_module,
      Module::register_parameter;
  template <typename... Args>
  void add(Args&&... args) {
    add_module<Linear>(std::forward<Args>(args)...);
  }
};

std::function<void()> own(const std::function<void(Own&)>& make) {
  return [make] { Own{make}; };
}

Initializer& initializer() {
  static Initializer all(1);
  return all;
}

/// A network of two layers.
struct Network {
  Sequential layers;

  Network() {
    layers.add<Linear>({.in = 4, .out = 3, .relu = true}, initializer());
    layers.add("head", std::make_unique<Linear>(LinearOptions{.in = 3, .out = 2}, initializer()));
  }
};

/// A state of that network that somebody has changed.
std::function<void()> loads(const std::function<void(NamedTensors&)>& change,
                            const LoadStateDictOptions& options = {}) {
  return [=] {
    Network network;
    NamedTensors state;
    for (const auto& [name, tensor] : network.layers.state_dict()) state.emplace_back(name, tensor.clone());
    change(state);
    network.layers.load_state_dict(state, options);
  };
}

/// The layer on an input of this shape and dtype.
template <typename Layer>
std::function<void()> calls(const typename Layer::Options& options, const Shape& shape, DType dtype = DType::f32) {
  return [=] {
    const Tensor x = Tensor::zeros(shape, {.dtype = dtype});
    if constexpr (std::is_constructible_v<Layer, typename Layer::Options, Initializer&>)
      Layer(options, initializer())(x);
    else
      Layer{options}(x);
  };
}

template <typename Layer>
std::function<void()> makes(const typename Layer::Options& options) {
  return [options] {
    if constexpr (std::is_constructible_v<Layer, typename Layer::Options, Initializer&>)
      Layer(options, initializer());
    else
      Layer{options};
  };
}

const Tensor kWeight = Tensor::zeros({2});

}  // namespace

TEST_CASE("errors of modules read as recorded", "[errors]") {
  check_errors(
      "modules",
      {
          {"Module, no forward", [] { Own([](Own&) {})(kWeight); }},
          {"Module, a name with a dot", own([](Own& m) { m.add_parameter("a.b", kWeight); })},
          {"Module, no name", own([](Own& m) { m.add_parameter("", kWeight); })},
          {"Module, a name twice", own([](Own& m) { m.add_parameter("w", kWeight), m.add_buffer("w", kWeight); })},
          {"Module, itself", own([](Own& m) { m.register_module("self", m); })},
          {"add_parameter, undefined", own([](Own& m) { m.add_parameter("w", Tensor()); })},
          {"add_parameter, integers",
           own([](Own& m) { m.add_parameter("w", Tensor::zeros({2}, {.dtype = DType::i64})); })},
          {"add_parameter, a result", own([](Own& m) {
             m.add_parameter("w", autograd::scale(autograd::set_requires_grad(Tensor::zeros({2})), 2.0));
           })},
          {"add_buffer, undefined", own([](Own& m) { m.add_buffer("count", Tensor()); })},
          {"register_buffer, undefined", own([](Own& m) {
             Tensor none;
             m.register_buffer("count", none);
           })},
          {"add_module, nothing", own([](Own& m) { m.add("head", std::unique_ptr<Linear>()); })},
          {"requires_grad, no such name", [] { Network().layers.requires_grad("haed", false); }},
          {"parameters, no such pattern", [] { Network().layers.parameters("heads.*"); }},
          {"parameters, no such name", [] { Network().layers.parameters("haed.bias"); }},
          {"to, integers", [] { Network().layers.to(DType::i32); }},
          {"to, a device that is not there", [] { Network().layers.to(Device{DeviceType::cuda, 63}); }},
          {"Sequential, a null module", [] { Sequential().add(std::unique_ptr<Linear>()); }},
          {"Sequential, a name twice", [] { Network().layers.add("head", [](const Tensor& x) { return x; }); }},
          {"Sequential, no such module", [] { static_cast<void>(Network().layers[2]); }},
          {"Sequential, an input that does not fit", [] { Network().layers(Tensor::zeros({5, 3})); }},
          {"ModuleList, no such module", [] { static_cast<void>(ModuleList()[0]); }},
          {"ModuleList, called", [] { ModuleList()(kWeight); }},
          {"ModuleList, a null module", [] { ModuleList().add(std::unique_ptr<Linear>()); }},
          {"Lambda, no function", [] { Lambda(nullptr); }},
          {"Lambda, a function that throws",
           [] {
             Sequential network;
             network.add([](const Tensor& x) { return autograd::matmul(x, x); }, "Square");
             network(Tensor::zeros({2, 3}));
           }},
          {"load_state_dict, a tensor too few", loads([](NamedTensors& state) { state.pop_back(); })},
          {"load_state_dict, a tensor too many",
           loads([](NamedTensors& state) { state.emplace_back("tail.bias", kWeight); })},
          {"load_state_dict, another shape",
           loads([](NamedTensors& state) { state.back().second = Tensor::zeros({7}); })},
          {"load_state_dict, another shape where names may differ",
           loads([](NamedTensors& state) { state.back().second = Tensor::zeros({7}); }, {.strict = false})},
          {"load_state_dict, integers",
           loads([](NamedTensors& state) { state.back().second = Tensor::zeros({2}, {.dtype = DType::i64}); })},
          {"load_state_dict, undefined", loads([](NamedTensors& state) { state.back().second = Tensor(); })},
          {"load_state_dict, a name twice", loads([](NamedTensors& state) { state.push_back(state.front()); })},
          {"summarize, no function",
           [] {
             Network network;
             summarize(network.layers, std::function<Tensor()>());
           }},
          {"summarize, another shape",
           [] {
             Network network;
             summarize(network.layers, Shape{1, 3});
           }},
          {"summarize, a network of integers",
           [] {
             Embedding embedding({.num_embeddings = 5, .embedding_dim = 2}, initializer());
             summarize(embedding, Shape{1, 3});
           }},
          {"make_model, an unknown name", [] { make_model({.name = "resnet81"}); }},
          {"make_model, an option it has no use for", [] { make_model({.name = "resnet9", .layers = 3}); }},
          {"make_model, a width it has no use for", [] { make_model({.name = "resnet9", .width = 0.5}); }},
          {"make_model, no such activation", [] { make_model({.name = "airbench94", .activation = "tanh"}); }},
          {"make_model, no alpha", [] { make_model({.name = "bag_of_tricks", .celu_alpha = 0.0}); }},
          {"make_model, a negative ghost batch", [] { make_model({.name = "bag_of_tricks", .ghost_batch = -1}); }},
          {"make_model, no width", [] { make_model({.name = "airbench94", .width = 0.0}); }},
          {"make_model, images too small", [] { make_model({.name = "vgg_lite", .image_size = 4}); }},
          {"make_model, no classes", [] { make_model({.classes = 0}); }},
      });
}

TEST_CASE("errors of layers' options read as recorded", "[errors]") {
  check_errors("layer_options",
               {
                   {"Linear, in", makes<Linear>({.in = 0, .out = 3})},
                   {"Linear, out", makes<Linear>({.in = 4, .out = -1})},
                   {"Conv2d, in", makes<Conv2d>({.in = 0, .out = 4, .kernel = 3})},
                   {"Conv2d, out", makes<Conv2d>({.in = 3, .out = 0, .kernel = 3})},
                   {"Conv2d, kernel", makes<Conv2d>({.in = 3, .out = 4, .kernel = {3, 0}})},
                   {"Conv2d, stride", makes<Conv2d>({.in = 3, .out = 4, .stride = 0})},
                   {"Conv2d, padding", makes<Conv2d>({.in = 3, .out = 4, .padding = -1})},
                   {"Conv2d, dilation", makes<Conv2d>({.in = 3, .out = 4, .dilation = 0})},
                   {"Conv2d, groups", makes<Conv2d>({.in = 3, .out = 4, .groups = 2})},
                   {"Conv2d, groups 0", makes<Conv2d>({.in = 3, .out = 4, .groups = 0})},
                   {"ConvTranspose2d, in", makes<ConvTranspose2d>({.in = 0, .out = 4})},
                   {"ConvTranspose2d, kernel", makes<ConvTranspose2d>({.in = 3, .out = 4, .kernel = 0})},
                   {"ConvTranspose2d, stride", makes<ConvTranspose2d>({.in = 3, .out = 4, .stride = 0})},
                   {"ConvTranspose2d, padding", makes<ConvTranspose2d>({.in = 3, .out = 4, .padding = -1})},
                   {"ConvTranspose2d, output_padding",
                    makes<ConvTranspose2d>({.in = 3, .out = 4, .stride = 2, .output_padding = 2})},
                   {"ConvTranspose2d, dilation", makes<ConvTranspose2d>({.in = 3, .out = 4, .dilation = 0})},
                   {"ConvTranspose2d, groups", makes<ConvTranspose2d>({.in = 4, .out = 3, .groups = 2})},
                   {"BatchNorm2d, channels", makes<BatchNorm2d>({.channels = 0})},
                   {"BatchNorm2d, momentum", makes<BatchNorm2d>({.channels = 3, .momentum = 1.5})},
                   {"BatchNorm2d, eps", makes<BatchNorm2d>({.channels = 3, .eps = -1.0})},
                   {"Whitening2d, in", makes<Whitening2d>({.in = 0})},
                   {"Whitening2d, kernel", makes<Whitening2d>({.kernel = {2, -1}})},
                   {"Whitening2d, a large patch", makes<Whitening2d>({.in = 64, .kernel = 5})},
                   {"Whitening2d, eps", makes<Whitening2d>({.eps = 0.0})},
                   {"Whitening2d, padding", makes<Whitening2d>({.padding = -1})},
                   {"Whitening2d, no bias to draw", makes<Whitening2d>({.with_bias = false, .draw_bias = true})},
                   {"set_unit_deviation, a constant", [] { set_unit_deviation(Tensor::full({4}, 2.0)); }},
                   {"BatchNorm2d, ghost_batch", makes<BatchNorm2d>({.channels = 4, .ghost_batch = -1})},
                   {"set_identity_filters, a matrix", [] { set_identity_filters(Tensor::zeros({4, 3})); }},
                   {"LayerNorm, no sizes", makes<LayerNorm>({})},
                   {"LayerNorm, a size of 0", makes<LayerNorm>({.normalized_shape = {4, 0}})},
                   {"LayerNorm, eps", makes<LayerNorm>({.normalized_shape = {4}, .eps = kNan})},
                   {"GroupNorm, groups", makes<GroupNorm>({.groups = 0, .channels = 4})},
                   {"GroupNorm, channels", makes<GroupNorm>({.groups = 3, .channels = 4})},
                   {"GroupNorm, eps", makes<GroupNorm>({.groups = 2, .channels = 4, .eps = -1.0})},
                   {"Embedding, num_embeddings", makes<Embedding>({.num_embeddings = 0, .embedding_dim = 2})},
                   {"Embedding, embedding_dim", makes<Embedding>({.num_embeddings = 5, .embedding_dim = -2})},
                   {"MaxPool2d, kernel", makes<MaxPool2d>({.kernel = 0})},
                   {"MaxPool2d, stride", makes<MaxPool2d>({.kernel = 2, .stride = -1})},
                   {"MaxPool2d, padding", makes<MaxPool2d>({.kernel = 2, .padding = 2})},
                   {"AvgPool2d, kernel", makes<AvgPool2d>({.kernel = 0})},
                   {"AvgPool2d, padding", makes<AvgPool2d>({.kernel = 3, .padding = -1})},
                   {"LeakyReLU, negative_slope", [] { LeakyReLU{kNan}; }},
                   {"CELU, alpha", [] { CELU{0.0}; }},
                   {"CELU, a negative alpha", [] { CELU{-0.3}; }},
                   {"CELU, no number", [] { CELU{kNan}; }},
                   {"Scale, factor", [] { Scale{kNan}; }},
                   {"Dropout, p", [] { Dropout{1.0}; }},
                   {"DropPath, p", [] { DropPath{-0.1}; }},
                   {"Residual, no body", [] { Residual(nullptr); }},
                   {"Residual, drop_path", [] { Residual(std::make_unique<Sequential>(), 1.0); }},
                   {"BasicBlock, channels", makes<BasicBlock>({.in = 0, .out = 8})},
                   {"BasicBlock, stride", makes<BasicBlock>({.in = 8, .out = 8, .stride = 0})},
               });
}

TEST_CASE("errors of layers' inputs read as recorded", "[errors]") {
  check_errors(
      "layer_inputs",
      {
          {"Linear, width", calls<Linear>({.in = 4, .out = 3}, {2, 5})},
          {"Linear, a number", calls<Linear>({.in = 4, .out = 3}, {})},
          {"Linear, integers", calls<Linear>({.in = 4, .out = 3}, {2, 4}, DType::i64)},
          {"Conv2d, channels", calls<Conv2d>({.in = 3, .out = 4, .kernel = 3}, {1, 4, 8, 8})},
          {"Conv2d, no batch", calls<Conv2d>({.in = 3, .out = 4, .kernel = 3}, {3, 8, 8})},
          {"Conv2d, a small image", calls<Conv2d>({.in = 3, .out = 4, .kernel = 3}, {1, 3, 2, 8})},
          {"ConvTranspose2d, channels", calls<ConvTranspose2d>({.in = 3, .out = 4}, {1, 4, 8, 8})},
          {"BatchNorm2d, channels", calls<BatchNorm2d>({.channels = 3}, {2, 4, 8, 8})},
          {"BatchNorm2d, one value per channel", calls<BatchNorm2d>({.channels = 3}, {1, 3, 1, 1})},
          {"Whitening2d, channels", calls<Whitening2d>({}, {1, 4, 8, 8})},
          {"Whitening2d, images of other channels",
           [] { Whitening2d({}, initializer()).initialize(Tensor::zeros({1, 4, 8, 8})); }},
          {"Whitening2d, small images", [] { Whitening2d({}, initializer()).initialize(Tensor::zeros({4, 3, 1, 8})); }},
          {"Whitening2d, images of NaN",
           [] { Whitening2d({}, initializer()).initialize(Tensor::full({4, 3, 8, 8}, kNan)); }},
          {"LayerNorm, width", calls<LayerNorm>({.normalized_shape = {4}}, {2, 5})},
          {"GroupNorm, channels", calls<GroupNorm>({.groups = 2, .channels = 4}, {2, 6, 3})},
          {"Embedding, floats", calls<Embedding>({.num_embeddings = 5, .embedding_dim = 2}, {3})},
          {"Embedding, no such row",
           [] {
             Embedding layer({.num_embeddings = 5, .embedding_dim = 2}, initializer());
             layer(Tensor::full({3}, 5.0, {.dtype = DType::i64}));
           }},
          {"MaxPool2d, a small image", calls<MaxPool2d>({.kernel = 3}, {1, 3, 2, 8})},
          {"DropPath, a number", [] { DropPath{0.5}(Tensor::full({}, 1.0)); }},
          {"Flatten, a number", [] { Flatten{}(Tensor::full({}, 1.0)); }},
          {"Residual, another shape",
           [] {
             auto body = std::make_unique<Sequential>();
             body->add<Linear>({.in = 4, .out = 3}, initializer());
             Residual{std::move(body)}(Tensor::zeros({2, 4}));
           }},
      });
}
