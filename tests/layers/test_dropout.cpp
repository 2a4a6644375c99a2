// Dropout and DropPath: what is dropped follows from seed, rank, layer, step and use.
#include "tandem/autograd/functions/reduce.h"
#include "tandem/autograd/variable.h"
#include "tandem/layers/layers.h"
#include "tests/support/catch.h"

#include <algorithm>
#include <cmath>

using namespace tandem;
using namespace tandem::layers;
using namespace tandem::test;

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
