// Layers one by one: what they compute, how they start, how they print.
#include "tandem/autograd/functions/reduce.h"
#include "tandem/autograd/variable.h"
#include "tandem/kernels/activation/activation.h"
#include "tandem/layers/layers.h"
#include "tests/support/catch.h"

#include <cmath>

using namespace tandem;
using namespace tandem::layers;
using namespace tandem::test;

namespace {

constexpr HeightWidth kThree = 3;

/// Small integers, so that sums of products are exact.
Tensor integers(const Shape& shape, std::uint32_t step) {
  const RandomKey key{.seed = 5, .stream = RandomStream::test, .step = step};
  std::vector<float> values(static_cast<std::size_t>(element_count(shape)));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(key.below(i, 7)) - 3.0f;
  return Tensor::from(values, shape, Layout::channels_last);
}

void fill_with_integers(Module& module) {
  std::uint32_t step = 100;
  for (const Tensor& parameter : module.parameters()) parameter.detach().copy_from(integers(parameter.shape(), step++));
}

}  // namespace

TEST_CASE("weights are uniform in +-1/sqrt(fan_in), drawn by seed and index, whatever the storage") {
  Initializer initializer(3);
  const Conv2d conv({.in = 32, .out = 64, .kernel = kThree, .groups = 2}, initializer);
  const Tensor weight = conv.named_parameters()[0].second, bias = conv.named_parameters()[1].second;
  CHECK(weight.shape() == Shape{64, 16, 3, 3});
  const double bound = 1.0 / std::sqrt(16.0 * 9.0);
  const auto values = weight.to_vector<double>();
  double sum = 0.0, squares = 0.0;
  for (const double value : values) {
    REQUIRE(std::abs(value) <= bound * (1 + 1e-6));
    sum += value;
    squares += value * value;
  }
  const auto count = static_cast<double>(values.size());
  // Five standard deviations of the mean of n uniform values, and of their mean square (4/45 bound^4 its variance).
  CHECK(std::abs(sum / count) < 5 * bound / std::sqrt(3 * count));
  CHECK(std::abs(squares / count - bound * bound / 3) < 5 * bound * bound * std::sqrt(4.0 / 45.0 / count));
  for (const double value : bias.to_vector<double>()) CHECK(std::abs(value) <= bound * (1 + 1e-6));

  const RandomKey first{3, RandomStream::initialization, 0}, second{3, RandomStream::initialization, 1};
  for (const std::size_t i : {0u, 1u, 5u, 4999u}) {
    CHECK(values[i] ==
          static_cast<double>(static_cast<float>((2.0 * static_cast<double>(first.uniform(i)) - 1.0) * bound)));
  }
  CHECK(bias.to_vector<double>()[7] ==
        static_cast<double>(static_cast<float>((2.0 * static_cast<double>(second.uniform(7)) - 1.0) * bound)));
  const Linear linear({.in = 100, .out = 10}, initializer);
  for (const double value : linear.parameters()[0].to_vector<double>()) CHECK(std::abs(value) <= 0.1 * (1 + 1e-6));
}

TEST_CASE("identity filters pass the input on, and the others are as they were drawn") {
  for (const std::int64_t out : {2, 3, 5}) {
    INFO(out << " filters");
    Initializer initializer(3), same(3);
    const Conv2d conv({.in = 3, .out = out, .kernel = kThree, .padding = 1, .bias = false}, initializer);
    const Conv2d drawn({.in = 3, .out = out, .kernel = kThree, .padding = 1, .bias = false}, same);
    set_identity_filters(conv.weight());
    const auto values = conv.weight().to_vector<float>(), before = drawn.weight().to_vector<float>();
    for (std::size_t k = 0; k < static_cast<std::size_t>(out); ++k) {
      for (std::size_t c = 0; c < 3; ++c) {
        for (std::size_t tap = 0; tap < 9; ++tap) {
          const std::size_t i = (k * 3 + c) * 9 + tap;
          CHECK(values[i] == (k >= 3 ? before[i] : k == c && tap == 4 ? 1.0f : 0.0f));
        }
      }
    }
    CHECK(autograd::requires_grad(conv.weight()));
  }
  Initializer initializer(3);
  Conv2d conv({.in = 3, .out = 5, .kernel = kThree, .padding = 1, .bias = false}, initializer);
  set_identity_filters(conv.weight());
  const Tensor x = integers({2, 3, 6, 5}, 1);
  CHECK(conv(x).detach().narrow(1, 0, 3).to_vector<float>() == x.to_vector<float>());
  const Tensor even = Tensor::full({1, 1, 2, 4}, 7.0);
  set_identity_filters(even);
  CHECK(even.to_vector<float>() == std::vector<float>{0, 0, 0, 0, 0, 0, 1, 0});  // at (1, 2)
  CHECK_THROWS_WITH(
      set_identity_filters(Tensor::zeros({3, 3})),
      ContainsText("set_identity_filters: needs the weight [K, C, R, S] of a convolution, got f32[3, 3]"));
}

TEST_CASE("a transposed convolution draws its weights by the output channels of a group, as PyTorch does") {
  Initializer initializer(3);
  const ConvTranspose2d twice({.in = 32, .out = 8, .kernel = {2, 2}, .stride = {2, 2}, .groups = 2}, initializer);
  CHECK(twice.weight().shape() == Shape{32, 4, 2, 2});
  CHECK(twice.bias().shape() == Shape{8});
  const double bound = 1.0 / std::sqrt(4.0 * 2.0 * 2.0);
  const RandomKey key{3, RandomStream::initialization, 0};
  const std::vector<double> values = twice.weight().to_vector<double>();
  for (const std::size_t i : {0u, 7u, 511u})
    CHECK(values[i] ==
          static_cast<double>(static_cast<float>((2.0 * static_cast<double>(key.uniform(i)) - 1.0) * bound)));
}

TEST_CASE("fused layers equal the layers they stand for, under the same names") {
  const bool bias = GENERATE(true, false);
  Initializer initializer(1);
  Sequential fused, plain;
  fused.add<Conv2d>(
      {.in = 3, .out = 4, .kernel = kThree, .stride = {2, 2}, .padding = {1, 1}, .bias = bias, .relu = true},
      initializer);
  fused.add<Flatten>();
  fused.add<Linear>({.in = 4 * 3 * 3, .out = 5, .bias = bias, .relu = true}, initializer);
  fused.add<Linear>({.in = 5, .out = 2}, initializer);
  plain.add<Conv2d>({.in = 3, .out = 4, .kernel = kThree, .stride = {2, 2}, .padding = {1, 1}, .bias = bias},
                    initializer);
  plain.add<ReLU>();
  plain.add<Flatten>();
  plain.add<Linear>({.in = 4 * 3 * 3, .out = 5, .bias = bias}, initializer);
  plain.add<ReLU>();
  plain.add<Linear>({.in = 5, .out = 2}, initializer);
  fill_with_integers(fused);
  plain.load_state_dict(fused.state_dict());
  const Tensor x = integers({2, 3, 5, 5}, 1);
  CHECK(fused(x).to_vector<float>() == plain(x).to_vector<float>());
}

TEST_CASE("each fusion computes what its layers compute one after the other") {
  Initializer initializer(1);
  const auto sequence = [](std::unique_ptr<Module> layer) {
    auto result = std::make_unique<Sequential>();
    result->add(std::move(layer));
    return result;
  };
  const auto conv = [&](bool relu) {
    return std::make_unique<Conv2d>(Conv2dOptions{.in = 3, .out = 4, .kernel = kThree, .padding = {1, 1}, .relu = relu},
                                    initializer);
  };
  const auto norm = [] { return std::make_unique<BatchNorm2d>(BatchNorm2dOptions{.channels = 4}); };
  const auto pool = [] { return std::make_unique<MaxPool2d>(2); };
  const auto with_relu = conv(true), without = conv(false);
  const auto batch_norm = norm();
  const auto maxima = pool();
  const auto first = sequence(conv(true)), second = sequence(pool());
  using Layers = std::vector<std::reference_wrapper<Module>>;
  const std::pair<std::size_t, Layers> cases[] = {{0, {*without, *maxima, *batch_norm}},
                                                  {1, {*without, *batch_norm}},
                                                  {2, {*with_relu, *maxima}},
                                                  {2, {*without, *maxima}},
                                                  {3, {*first, *second}}};
  const Tensor x = integers({2, 3, 7, 6}, 1);
  CHECK(fusions().size() == 4);
  for (const auto& [number, layers] : cases) {
    const Fusion& row = fusions()[number];
    INFO(row.name);
    CHECK(row.size == layers.size());
    CHECK(find_fusion(layers, x) == nullptr);  // on the CPU there is nothing to gain
    Tensor apart = x;
    for (Module& layer : layers) apart = layer(apart);
    CHECK(call_all(layers, x).to_vector<float>() == apart.to_vector<float>());
    CHECK(row.run(layers, x).to_vector<float>() == apart.to_vector<float>());
  }
  CHECK(call_all({}, x).to_vector<float>() == x.to_vector<float>());
}

TEST_CASE("a fusion's errors name the layer") {
  Initializer initializer(1);
  Sequential network;
  auto& conv = network.add<Conv2d>({.in = 3, .out = 4, .relu = true}, initializer);
  auto& pool = network.add<MaxPool2d>(2);
  const std::vector<std::reference_wrapper<Module>> pair{conv, pool};
  CHECK_THROWS_WITH(fusions()[2].run(pair, integers({2, 5, 6, 6}, 1)), ContainsText("layer 0: conv"));
}

TEST_CASE("batch norm with an activation equals batch norm, then that, and both keep the same statistics") {
  const Activation activation = GENERATE(Activation::relu, Activation::gelu, Activation::silu);
  Sequential fused, plain;
  fused.add<BatchNorm2d>({.channels = 3, .activation = activation});
  plain.add<BatchNorm2d>({.channels = 3});
  if (activation == Activation::relu) plain.add<ReLU>();
  if (activation == Activation::gelu) plain.add<GELU>();
  if (activation == Activation::silu) plain.add<SiLU>();
  // What comes behind has the same number in the state dict.
  fused.add<BatchNorm2d>({.channels = 3});
  plain.add<BatchNorm2d>({.channels = 3});
  CHECK(fused.named_parameters().back().first == "2.bias");
  CHECK(plain.named_parameters().back().first == "2.bias");
  const Tensor x = integers({4, 3, 2, 2}, 1);
  for (const bool training : {true, false}) {
    fused.train(training);
    plain.train(training);
    CHECK(fused(x).to_vector<float>() == plain(x).to_vector<float>());
  }
  const auto statistics = fused.named_buffers();
  CHECK(statistics[0].second.to_vector<float>() == plain.named_buffers()[0].second.to_vector<float>());
  CHECK(statistics[2].first == "0.num_batches_tracked");
  CHECK(statistics[2].second.item() == 1.0);  // counted in training only
}

TEST_CASE("batch norm moves its statistics as PyTorch does") {
  BatchNorm2d norm({.channels = 1, .momentum = 0.5});
  norm(Tensor::from<float>({1, 2, 3, 6}, {2, 1, 1, 2}));  // mean 3, variance 3.5 biased, 14/3 unbiased
  const auto buffers = norm.named_buffers();
  CHECK(buffers[0].second.item() == 1.5);
  CHECK(buffers[1].second.item() == Approx(0.5 + 0.5 * 14.0 / 3.0).epsilon(1e-6));
  norm.eval();
  const Tensor y = norm(Tensor::full({1, 1, 1, 1}, 1.5));
  CHECK(y.item() == 0.0);
}

TEST_CASE("pooling, activations and scaling") {
  const Tensor x = Tensor::from<float>({1, -2, 3, 4, 5, -6, 7, 8}, {1, 2, 2, 2}, Layout::channels_last);
  CHECK(MaxPool2d(2)(x).to_vector<float>() == std::vector<float>{4, 8});
  CHECK(AvgPool2d(2)(x).to_vector<float>() == std::vector<float>{1.5f, 3.5f});
  CHECK(GlobalAvgPool2d()(x).shape() == Shape{1, 2, 1, 1});
  CHECK(GlobalAvgPool2d()(x).to_vector<float>() == std::vector<float>{1.5f, 3.5f});
  CHECK(Flatten()(x).shape() == Shape{1, 8});
  CHECK(Flatten()(x).to_vector<float>() == x.to_vector<float>());
  CHECK(ReLU()(x).to_vector<float>() == std::vector<float>{1, 0, 3, 4, 5, 0, 7, 8});
  CHECK(Scale(0.125)(x).to_vector<float>()[7] == 1.0f);
  const double value = GELU()(Tensor::full({1}, 1.0, {.dtype = DType::f64})).item();
  CHECK(value == Approx(0.5 * (1 + std::erf(1 / std::sqrt(2.0)))).epsilon(1e-14));
  CHECK(SiLU()(Tensor::full({1}, 1.0, {.dtype = DType::f64})).item() ==
        Approx(1 / (1 + std::exp(-1.0))).epsilon(1e-14));
}

TEST_CASE("one number sets the height and the width of a window") {
  Initializer initializer(1);
  const Conv2dOptions one{.in = 2, .out = 3, .kernel = 3, .stride = 2, .padding = 1, .dilation = 2};
  const Conv2dOptions two{.in = 2, .out = 3, .kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}, .dilation = {2, 2}};
  CHECK((one.kernel == two.kernel && one.stride == two.stride && one.padding == two.padding &&
         one.dilation == two.dilation));
  CHECK(Conv2d(one, initializer)(integers({1, 2, 9, 8}, 1)).shape() == Shape{1, 3, 4, 3});
  const ConvTranspose2dOptions transposed{
      .in = 2, .out = 3, .kernel = 3, .stride = 2, .padding = 1, .output_padding = 1};
  CHECK(transposed.output_padding == HeightWidth{1, 1});
  CHECK(ConvTranspose2d(transposed, initializer)(integers({1, 2, 4, 5}, 1)).shape() == Shape{1, 3, 8, 10});
  CHECK(MaxPool2d({.kernel = 3, .stride = 1, .padding = 1}).describe() ==
        "MaxPool2d(kernel 3x3, stride 1x1, padding 1x1)");
  CHECK(MaxPool2d({.kernel = 3, .stride = 2, .ceil_mode = true}).describe() ==
        "MaxPool2d(kernel 3x3, stride 2x2, ceil mode)");
  CHECK(HeightWidth{1, 2} != HeightWidth{2, 1});
  CHECK((HeightWidth{1, 2}[0] == 1 && HeightWidth{1, 2}[1] == 2));
}

TEST_CASE("windows lie side by side where no stride is given, as in PyTorch") {
  const Tensor x = integers({1, 2, 9, 9}, 1);
  CHECK(MaxPool2d({.kernel = 3})(x).shape() == Shape{1, 2, 3, 3});
  CHECK(AvgPool2d({.kernel = {3, 2}})(x).shape() == Shape{1, 2, 3, 4});
  Sequential network;
  network.add<MaxPool2d>({.kernel = 3, .padding = 1});
  CHECK(network(x).shape() == Shape{1, 2, 3, 3});
}

TEST_CASE("residual blocks add their input") {
  Initializer initializer(1);
  auto body = std::make_unique<Sequential>();
  body->add<Scale>(2.0);
  Residual residual(std::move(body));
  CHECK(residual(Tensor::full({1, 1, 1, 1}, 5)).item() == 15.0);

  BasicBlock same({.in = 4, .out = 4}, initializer), wider({.in = 4, .out = 8, .stride = 2}, initializer);
  same.eval();
  CHECK(same.named_parameters().size() == 6);
  CHECK(wider.named_parameters()[6].first == "downsample.0.weight");
  CHECK(wider(integers({2, 4, 6, 6}, 1)).shape() == Shape{2, 8, 3, 3});
  // With the residual branch at zero the block is the ReLU of its input.
  for (const auto& [name, parameter] : same.named_parameters()) parameter.detach().zero();
  const Tensor x = integers({2, 4, 6, 6}, 2);
  CHECK(same(x).to_vector<float>() == ReLU()(x).to_vector<float>());
}

TEST_CASE("layers describe themselves and refuse sizes that make no sense") {
  Initializer initializer(1);
  CHECK(Conv2d({.in = 4, .out = 8, .kernel = {3, 5}, .stride = {2, 2}, .padding = {1, 2}, .groups = 2, .bias = false},
               initializer)
            .describe() == "Conv2d(4, 8, kernel 3x5, stride 2x2, padding 1x2, groups 2, no bias)");
  CHECK(Conv2d({.in = 4, .out = 8, .kernel = kThree, .dilation = {2, 2}, .relu = true}, initializer).describe() ==
        "ConvBiasReLU(4, 8, kernel 3x3, dilation 2x2)");
  CHECK(ConvTranspose2d({.in = 4, .out = 8, .kernel = kThree, .stride = {2, 2}, .output_padding = {1, 1}, .groups = 4},
                        initializer)
            .describe() == "ConvTranspose2d(4, 8, kernel 3x3, stride 2x2, output_padding 1x1, groups 4)");
  CHECK(Linear({.in = 4, .out = 8, .bias = false, .relu = true}, initializer).describe() ==
        "LinearReLU(4, 8, no bias)");
  CHECK(BatchNorm2d({.channels = 8, .activation = Activation::relu}).describe() == "BatchNormReLU(8)");
  CHECK(BatchNorm2d({.channels = 8, .activation = Activation::gelu}).describe() == "BatchNormGELU(8)");
  CHECK(BatchNorm2d({.channels = 8, .activation = Activation::silu}).describe() == "BatchNormSiLU(8)");
  CHECK(MaxPool2d({.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}}).describe() ==
        "MaxPool2d(kernel 3x3, stride 2x2, padding 1x1)");
  CHECK(Dropout(0.5).describe() == "Dropout(0.5)");

  CHECK_THROWS_WITH(Conv2d({.in = 0, .out = 8, .kernel = kThree}, initializer), ContainsText("must be positive"));
  CHECK_THROWS_WITH(Conv2d({.in = 4, .out = 6, .kernel = kThree, .groups = 4}, initializer),
                    ContainsText("4 groups do not divide"));
  CHECK_THROWS_WITH(ConvTranspose2d({.in = 4, .out = 0}, initializer),
                    ContainsText("ConvTranspose2d: 4 to 0 channels with a 1x1 kernel: all sizes must be positive"));
  CHECK_THROWS_WITH(ConvTranspose2d({.in = 4, .out = 6, .groups = 4}, initializer),
                    ContainsText("ConvTranspose2d: 4 groups do not divide"));
  CHECK_THROWS_WITH(ConvTranspose2d({.in = 4, .out = 6, .output_padding = {0, 1}}, initializer),
                    ContainsText("output_padding 0x1 must be at least 0 and less than the stride 1x1"));
  CHECK_THROWS_WITH(Linear({.in = 4, .out = -1}, initializer), ContainsText("must be positive"));
  CHECK_THROWS_WITH(BatchNorm2d({.channels = 0}), ContainsText("must be positive"));
  for (const double momentum : {-0.1, 1.1, std::nan("")})
    CHECK_THROWS_WITH(BatchNorm2d({.channels = 2, .momentum = momentum}), ContainsText("momentum must be from 0 to 1"));
  CHECK_THROWS_WITH(BatchNorm2d({.channels = 2, .eps = -1.0}), ContainsText("eps must not be negative"));
  CHECK_THROWS_WITH(Dropout(1.0), ContainsText("[0, 1)"));
}
