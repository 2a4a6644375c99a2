// What a summary says of work and memory.
#include "tandem/autograd/functions.h"
#include "tandem/core/memory.h"
#include "tandem/layers/layers.h"
#include "tandem/layers/models/models.h"
#include "tandem/layers/summary.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"

using namespace tandem;
using namespace tandem::layers;
using namespace tandem::test;

TEST_CASE("a summary counts the products of convolutions and matrices") {
  Initializer initializer(1);
  Sequential network;
  network.add<Conv2d>({.in = 4, .out = 6, .kernel = {3, 3}, .padding = {1, 1}, .groups = 2, .relu = true}, initializer);
  network.add<MaxPool2d>(2);
  network.add<Flatten>();
  network.add<Linear>({.in = 24, .out = 5, .bias = false}, initializer);
  const ModelSummary facts = summarize(network, {3, 4, 4, 4});
  REQUIRE(facts.layers.size() == 4);
  CHECK(facts.layers[0].flops == 2.0 * (3 * 6 * 4 * 4) * (2 * 3 * 3));
  CHECK(facts.layers[1].flops == 0.0);
  CHECK(facts.layers[3].flops == 2.0 * 3 * 5 * 24);
  CHECK(facts.layers[3].output == Shape{3, 5});
  CHECK(facts.flops == facts.layers[0].flops + facts.layers[3].flops);
  CHECK(facts.parameters == 6 * 2 * 9 + 6 + 5 * 24);
  CHECK(facts.frozen_parameters == 0);
  CHECK_THAT(to_string(facts), ContainsText("11.1 k FLOPs in a forward pass"));

  network.requires_grad("0", false);
  CHECK_THAT(summary(network, {3, 4, 4, 4}), ContainsText("234 parameters (114 of them frozen) in 3 tensors"));
}

TEST_CASE("a summary counts the products of a transposed convolution by its input") {
  Initializer initializer(1);
  Sequential network;
  network.add<ConvTranspose2d>({.in = 4, .out = 6, .kernel = {3, 3}, .stride = {2, 2}, .groups = 2}, initializer);
  CHECK(summarize(network, {3, 4, 5, 5}).flops == 2.0 * (3 * 4 * 5 * 5) * (3 * 3 * 3));
}

TEST_CASE("resnet18 takes the published number of operations") {
  // 0.56 G multiply-adds for an image of 32x32 (the variant for small images), which are twice as many FLOPs.
  const auto network = make_model({.name = "resnet18"});
  const double flops = summarize(*network, {1, 3, 32, 32}).flops;
  CHECK(flops > 1.10e9);
  CHECK(flops < 1.13e9);
}

TEST_CASE("activation memory is what the tape keeps, and grows with the batch") {
  Sequential network;
  Initializer initializer(1);
  network.add<Linear>({.in = 16, .out = 1024}, initializer);
  network.add([](const Tensor& x) { return autograd::gelu(x); }, "GELU");  // keeps its input
  network.add<Linear>({.in = 1024, .out = 16}, initializer);               // keeps its input
  const std::int64_t one = summarize(network, {8, 16}).activation_bytes;
  CHECK(one >= 2 * 8 * 1024 * 4 + 8 * 16 * 4);
  CHECK(one < 2 * 8 * 1024 * 4 + 8 * 16 * 4 + 4096);
  CHECK(summarize(network, {16, 16}).activation_bytes > 19 * one / 10);
  network.requires_grad(false);
  CHECK(summarize(network, {8, 16}).activation_bytes <= 8 * 16 * 4 + 256);  // nothing is recorded
}

TEST_CASE("a summary is made of a tensor, or of a function that calls the network") {
  Initializer initializer(1);
  Sequential words;
  words.add<Embedding>({.num_embeddings = 10, .embedding_dim = 4}, initializer);
  words.add<Linear>({.in = 4, .out = 3}, initializer);
  const Tensor numbers = Tensor::from<std::int64_t>({1, 9, 3, 3, 0}, {5});
  const ModelSummary facts = summarize(words, numbers);
  CHECK(facts.layers[0].output == Shape{5, 4});
  CHECK(facts.flops == 2.0 * 5 * 4 * 3);
  CHECK(facts.activation_bytes >= (5 * 4 + 5 * 3) * 4);
  CHECK_THAT(summary(words, numbers), ContainsText("Embedding(10, 4)"));
  CHECK_THAT(error_of([&] { summary(words, {5}); }),
             ContainsText("indices must be i64, got f32[5]") && ContainsText("where it takes integers, give a tensor"));

  ModuleList towers;
  for (int i = 0; i < 2; ++i) towers.add<Linear>({.in = 4, .out = 3}, initializer);
  const Tensor x = Tensor::zeros({8, 4}), y = Tensor::zeros({8, 4});
  const auto both = [&] { return autograd::relu(towers[0](x)) + towers[1](y); };
  const ModelSummary of_both = summarize(towers, both);
  REQUIRE(of_both.layers.size() == 2);
  CHECK(of_both.layers[1].calls == 1);
  CHECK(of_both.layers[1].output == Shape{8, 3});
  CHECK(of_both.flops == 2 * 2.0 * 8 * 4 * 3);
  CHECK(summary(towers, both) == to_string(of_both));
  CHECK(towers.training());
  CHECK_FALSE(towers[0].is_observed());
  CHECK_THAT(error_of([&] { summarize(towers, std::function<Tensor()>()); }), ContainsText("got an empty function"));
}

TEST_CASE("a summary has a line for parameters beside those of children, and adds up") {
  struct Scaled final : Module {
    Initializer initializer{1};
    Linear& linear = add_module<Linear>("linear", {.in = 4, .out = 5}, initializer);
    Tensor& factor = add_parameter("factor", Tensor::full({5}, 2.0));
    Tensor forward(const Tensor& x) override { return linear(x) * factor; }
  } network;
  const ModelSummary facts = summarize(network, {2, 4});
  REQUIRE(facts.layers.size() == 2);
  CHECK(facts.layers[0].name.empty());
  CHECK(facts.layers[0].what == "Scaled");
  CHECK(facts.layers[0].parameters == 5);
  CHECK(facts.layers[0].output == Shape{2, 5});
  CHECK(facts.layers[1].parameters == 25);
  CHECK(facts.parameters == 30);
}

TEST_CASE("a summary leaves statistics, modes, hooks and random numbers as they were") {
  Initializer initializer(1);
  Sequential network;
  network.add<Linear>({.in = 4, .out = 4}, initializer);
  network.add<Dropout>(0.5);
  network.add<DropPath>(0.5);
  network[0].eval();
  const auto state = std::make_shared<RandomState>(1);
  network.set_random_state(state);
  const std::string text = summary(network, {2, 4});
  CHECK(network.training());
  CHECK_FALSE(network[0].training());
  CHECK_FALSE(network[0].is_observed());
  const auto untouched = std::make_shared<RandomState>(1);
  CHECK(state->next_key(0).bits(0) == untouched->next_key(0).bits(0));

  const auto with_norm = make_model({.name = "small_cnn"});
  const auto before = with_norm->named_buffers()[0].second.to_vector<float>();
  summarize(*with_norm, {2, 3, 32, 32});
  CHECK(with_norm->named_buffers()[0].second.to_vector<float>() == before);
  CHECK(with_norm->named_buffers()[2].second.item() == 0.0);
}

TEST_CASE("a summary counts what layers of one's own compute, not what they add") {
  struct Attention final : Module {
    Initializer initializer{1};
    Tensor& position = add_parameter("position", Tensor::zeros({8, 32}));
    Linear& query = add_module<Linear>("query", {.in = 32, .out = 16}, initializer);
    Tensor& key = add_parameter("key", Tensor::full({32, 16}, 0.1));
    Tensor forward(const Tensor& x) override {
      const Tensor y = x + position;
      return autograd::matmul(query(y), autograd::transpose(autograd::matmul(y, key), -1, -2));
    }
    std::string describe() const override { return "Attention"; }
  };
  struct Twice final : Module {
    Attention& attention = add_module<Attention>("attention");
    Tensor forward(const Tensor& x) override {
      attention(x);
      return autograd::matmul(attention(x), Tensor::zeros({4, 8, 3}));
    }
    std::string describe() const override { return "Twice"; }
  } network;
  const ModelSummary facts = summarize(network, {4, 8, 32});
  REQUIRE(facts.layers.size() == 3);
  CHECK(facts.layers[0].name.empty());  // without parameters, but with a product
  CHECK(facts.layers[0].flops == 2.0 * 4 * 8 * 8 * 3);
  CHECK(facts.layers[1].name == "attention");
  CHECK(facts.layers[1].calls == 2);
  CHECK(facts.layers[1].flops == 2 * 2.0 * (4 * 8 * 32 * 16 + 4 * 8 * 16 * 8));
  CHECK(facts.layers[2].name == "attention.query");
  CHECK(facts.layers[2].flops == 2 * 2.0 * 4 * 8 * 32 * 16);
  CHECK(facts.flops == facts.layers[0].flops + facts.layers[1].flops + facts.layers[2].flops);
}
