// Layers one by one: what they compute, how they start, how they print.
#include "tandem/autograd/functions/reduce.h"
#include "tandem/autograd/variable.h"
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

TEST_CASE("each fusion computes what its two layers compute one after the other") {
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
  std::pair<std::unique_ptr<Module>, std::unique_ptr<Module>> pairs[] = {
      {conv(false), norm()}, {conv(true), pool()}, {sequence(conv(true)), sequence(pool())}};
  const Tensor x = integers({2, 3, 6, 6}, 1);
  REQUIRE(fusions().size() == std::size(pairs));
  for (std::size_t i = 0; i < std::size(pairs); ++i) {
    INFO(fusions()[i].name);
    auto& [first, second] = pairs[i];
    CHECK(find_fusion(*first, *second, x) == nullptr);  // on the CPU there is nothing to gain
    const std::vector<float> apart = (*second)((*first)(x)).to_vector<float>();
    CHECK(call_both(*first, *second, x).to_vector<float>() == apart);
    CHECK(fusions()[i].run(*first, *second, x).to_vector<float>() == apart);
  }
}

TEST_CASE("a fusion's errors name the layer") {
  Initializer initializer(1);
  Sequential network;
  auto& conv = network.add<Conv2d>({.in = 3, .out = 4, .relu = true}, initializer);
  auto& pool = network.add<MaxPool2d>(2);
  CHECK_THROWS_WITH(fusions()[1].run(conv, pool, integers({2, 5, 6, 6}, 1)), ContainsText("layer 0: conv"));
}

TEST_CASE("batch norm with ReLU equals batch norm, then ReLU, and both keep the same statistics") {
  Sequential fused, plain;
  fused.add<BatchNorm2d>({.channels = 3, .relu = true});
  plain.add<BatchNorm2d>({.channels = 3});
  plain.add<ReLU>();
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

TEST_CASE("dropout's mask follows from seed, rank, layer, step and use") {
  Sequential network;
  network.add<Dropout>(0.25);
  network.add<Sequential>().add<Dropout>(0.25);
  const Tensor x = Tensor::full({10'000}, 1.0);
  const auto state = std::make_shared<RandomState>(7);
  network.set_random_state(state);
  const auto first = network[0](x).to_vector<float>();
  const auto dropped = std::count(first.begin(), first.end(), 0.0f);
  CHECK(std::abs(static_cast<double>(dropped) - 2500) < 5 * std::sqrt(10'000 * 0.25 * 0.75));
  CHECK(std::count(first.begin(), first.end(), 4.0f / 3.0f) == 10'000 - dropped);
  CHECK(network[1](x).to_vector<float>() != first);
  const auto again = network[0](x).to_vector<float>();
  CHECK(again != first);

  state->advance();
  CHECK(network[0](x).to_vector<float>() != first);
  state->set_step(0);
  CHECK(network[0](x).to_vector<float>() == first);
  CHECK(network[0](x).to_vector<float>() == again);
  network.set_random_state(std::make_shared<RandomState>(7, 1));
  CHECK(network[0](x).to_vector<float>() != first);
  network.set_random_state(std::make_shared<RandomState>(8));
  CHECK(network[0](x).to_vector<float>() != first);

  network.eval();
  CHECK(network(x).to_vector<float>() == x.to_vector<float>());
  CHECK(Dropout(0.0)(x).is_same(x));
}

TEST_CASE("DropPath leaves out whole samples, and scales the others") {
  constexpr std::int64_t kSamples = 4000;
  DropPath drop_path(0.25);
  const auto state = std::make_shared<RandomState>(7);
  drop_path.set_random_state(state);
  const Tensor x =
      autograd::set_requires_grad(Tensor::full({kSamples, 2, 3, 1}, 3.0, {.layout = Layout::channels_last}));
  const Tensor y = drop_path(x);
  CHECK(y.shape() == x.shape());
  const auto values = y.to_vector<float>();
  std::int64_t dropped = 0;
  for (std::size_t sample = 0; sample < kSamples; ++sample) {
    const float first = values[6 * sample];
    dropped += first == 0.0f ? 1 : 0;
    if (first != 0.0f) CHECK(first == 3.0f * (1.0f / 0.75f));
    for (std::size_t i = 1; i < 6; ++i) CHECK(values[6 * sample + i] == first);
  }
  CHECK(std::abs(static_cast<double>(dropped) - 1000) < 5 * std::sqrt(kSamples * 0.25 * 0.75));
  autograd::backward(autograd::sum(y));
  const auto slopes = autograd::grad(x).to_vector<float>();
  for (std::size_t i = 0; i < slopes.size(); ++i) CHECK(slopes[i] == (values[i] == 0.0f ? 0.0f : 1.0f / 0.75f));
  CHECK(drop_path(x).to_vector<float>() != values);
  state->set_step(0);
  CHECK(drop_path(x).to_vector<float>() == values);
  drop_path.eval();
  CHECK(drop_path(x).is_same(x));
  CHECK(DropPath(0.0)(x).is_same(x));
  CHECK(drop_path.describe() == "DropPath(0.25)");
  CHECK_THROWS_WITH(DropPath(1.0), ContainsText("DropPath: p must be in [0, 1), got 1"));
}

TEST_CASE("a residual block whose branch is dropped is its shortcut") {
  Initializer initializer(1);
  const Tensor x = Tensor::full({64, 8, 4, 4}, 1.0, {.layout = Layout::channels_last});
  BasicBlock block({.in = 8, .out = 8, .drop_path = 0.5}, initializer);
  block.set_random_state(std::make_shared<RandomState>(3));
  const auto y = block(x).to_vector<float>();
  std::int64_t shortcuts = 0;
  for (std::size_t sample = 0; sample < 64; ++sample) {
    bool same = true;
    for (std::size_t i = 0; i < 128; ++i) same = same && y[128 * sample + i] == 1.0f;  // relu(0 + 1)
    shortcuts += same ? 1 : 0;
  }
  CHECK(shortcuts > 12);
  CHECK(shortcuts < 52);
  block.eval();
  BasicBlock plain({.in = 8, .out = 8}, initializer);
  plain.load_state_dict(block.state_dict());  // the same names
  plain.eval();
  CHECK(block(x).to_vector<float>() == plain(x).to_vector<float>());
}

TEST_CASE("dropout that was given no random state has one of its own, another for each layer") {
  const Tensor x = Tensor::full({10'000}, 1.0);
  Sequential network;
  network.add<Dropout>(0.25);
  network.add<Dropout>(0.25);
  const auto first = network[0](x).to_vector<float>();
  const auto dropped = std::count(first.begin(), first.end(), 0.0f);
  CHECK(std::abs(static_cast<double>(dropped) - 2500) < 5 * std::sqrt(10'000 * 0.25 * 0.75));
  CHECK(network[0](x).to_vector<float>() != first);
  const auto second = network[1](x).to_vector<float>();
  CHECK(second != first);

  const auto given = [&] {
    network.set_random_state(std::make_shared<RandomState>(7));
    return network[0](x).to_vector<float>();
  };
  const auto with_seed = given();
  CHECK(with_seed != first);
  network.set_random_state(nullptr);  // its own again, which goes on
  CHECK(network[0](x).to_vector<float>() != with_seed);
  CHECK(given() == with_seed);
}

TEST_CASE("every training forward drops other elements, also where nobody counts steps, and evaluation counts none") {
  const Tensor x = Tensor::full({1'000}, 1.0);
  const auto masks = [&](bool evaluates) {
    Sequential network;
    network.add<Dropout>(0.5);
    network.set_random_state(std::make_shared<RandomState>(7));
    std::vector<std::vector<float>> result;
    for (int forward = 0; forward < 5; ++forward) {
      network.train();
      result.push_back(network(x).to_vector<float>());
      network.eval();
      if (evaluates) network(x);
    }
    return result;
  };
  const auto once = masks(false);
  for (std::size_t i = 0; i < once.size(); ++i) {
    for (std::size_t k = 0; k < i; ++k) CHECK(once[i] != once[k]);
  }
  CHECK(masks(true) == once);
}

TEST_CASE("a dropout layer used twice in one forward drops other elements each time, and backward the same") {
  Dropout dropout(0.5);
  const auto state = std::make_shared<RandomState>(7);
  dropout.set_random_state(state);
  const Tensor x = autograd::set_requires_grad(Tensor::full({1'000}, 1.0));
  const Tensor first = dropout(x), second = dropout(x);
  CHECK(first.to_vector<float>() != second.to_vector<float>());
  autograd::backward(autograd::sum(second));
  CHECK(autograd::grad(x).to_vector<float>() == second.to_vector<float>());  // 0 or 2, as x is 1
  autograd::clear_grad(x);
  autograd::backward(autograd::sum(first));
  CHECK(autograd::grad(x).to_vector<float>() == first.to_vector<float>());
  // Independent masks agree in half of the elements: five deviations of a binomial.
  const auto a = first.to_vector<float>(), b = second.to_vector<float>();
  int alike = 0;
  for (std::size_t i = 0; i < a.size(); ++i) alike += a[i] == b[i] ? 1 : 0;
  CHECK(std::abs(alike - 500) < 5 * std::sqrt(1'000 * 0.25));
}

TEST_CASE("the first use of a step draws what it drew before there were uses") {
  // Recorded from a build that knew one use: training curves stay what they were.
  const auto bits = [](std::uint32_t rank, std::uint32_t step, std::uint32_t layer) {
    Sequential network;
    for (std::uint32_t i = 0; i <= layer; ++i) network.add<Dropout>(0.5);
    const auto state = std::make_shared<RandomState>(7, rank);
    state->set_step(step);
    network.set_random_state(state);
    std::uint32_t word = 0;
    for (const float value : network[layer](Tensor::full({32}, 1.0)).to_vector<float>())
      word = 2 * word + (value != 0.0f ? 1u : 0u);
    return word;
  };
  CHECK(bits(0, 0, 0) == 2409649321u);
  CHECK(bits(0, 1, 0) == 1446907963u);
  CHECK(bits(3, 5, 1) == 1821108946u);
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
  CHECK(BatchNorm2d({.channels = 8, .relu = true}).describe() == "BatchNormReLU(8)");
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
