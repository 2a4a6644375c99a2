// Embedding as a function and as a layer, beyond the op table.
#include "tandem/autograd/functions.h"
#include "tandem/autograd/variable.h"
#include "tandem/layers/layers.h"
#include "tandem/layers/summary.h"
#include "tandem/optim/sgd.h"
#include "tests/kernels/image_support.h"
#include "tests/support/catch.h"
#include "tests/support/cuda_device.h"

#include <cmath>

using namespace tandem;
using namespace tandem::layers;
using namespace tandem::test;

namespace {

Tensor indices_of(const std::vector<std::int64_t>& values, const Shape& shape) { return Tensor::from(values, shape); }

}  // namespace

TEST_CASE("a layer Embedding is the function, says its sizes, and refuses bad ones") {
  Initializer initializer(1);
  Embedding layer({.num_embeddings = 7, .embedding_dim = 3}, initializer);
  const Tensor indices = indices_of({6, 0, 6, 2}, {2, 2}), weight = layer.parameters().front();
  CHECK(layer(indices).shape() == Shape{2, 2, 3});
  CHECK(layer(indices).to_vector<float>() == autograd::embedding(indices, weight).to_vector<float>());
  CHECK(layer.describe() == "Embedding(7, 3)");
  CHECK_THROWS_WITH(Embedding({.num_embeddings = 0, .embedding_dim = 3}, initializer),
                    ContainsText("Embedding: 0 embeddings of 3 features: both must be positive"));
  CHECK_THROWS_WITH(Embedding({.num_embeddings = 3, .embedding_dim = -1}, initializer),
                    ContainsText("both must be positive"));
  CHECK_THROWS_WITH(layer(indices_of({7}, {1})), ContainsText("index 0 is 7, outside of the 7 rows"));
}

TEST_CASE("weights of an Embedding are normal, and the same on any number of threads") {
  const auto draw = [](int threads) {
    const ThreadScope scope(threads);
    return Initializer(3).normal({100, 100}, 2.0).detach();
  };
  const Tensor weight = draw(1);
  CHECK(same_bits(weight, draw(3)));
  double sum = 0.0, squares = 0.0;
  for (const double value : weight.to_vector<double>()) {
    sum += value;
    squares += value * value;
  }
  // 10,000 of standard deviation 2: their mean and variance within five standard errors.
  CHECK(std::abs(sum / 1e4) < 5 * 2.0 / 100.0);
  CHECK(std::abs(squares / 1e4 - 4.0) < 5 * 4.0 * std::sqrt(2.0) / 100.0);
}

TEST_CASE("the gradient of an Embedding does not depend on the number of threads") {
  const Tensor table = random_images({300, 70}, 1), gradient = random_images({2000, 70}, 2);
  std::vector<std::int64_t> values;
  for (std::int64_t n = 0; n < 2000; ++n) values.push_back(n * n % 300);
  const Tensor indices = indices_of(values, {2000});
  const auto run = [&](int threads) {
    const ThreadScope scope(threads);
    const Tensor weight = autograd::set_requires_grad(table.clone());
    autograd::backward(autograd::embedding(indices, weight), gradient);
    return autograd::grad(weight);
  };
  CHECK(same_bits(run(1), run(3)));
}

TEST_CASE("gradients of halves that name one row are added up in f32 and rounded once") {
  const Tensor weight = autograd::set_requires_grad(Tensor::zeros({2, 1}, {.dtype = DType::bf16}));
  const Tensor indices = indices_of(std::vector<std::int64_t>(300, 1), {300});
  autograd::backward(autograd::embedding(indices, weight), Tensor::full({300, 1}, 1.0, {.dtype = DType::bf16}));
  CHECK(autograd::grad(weight).to_vector<float>() == std::vector<float>{0.0f, 300.0f});  // in bf16, 256 + 1 is 256
}

TEST_CASE("no indices give no rows, and a gradient of zeros") {
  const Tensor weight = autograd::set_requires_grad(Tensor::full({2, 3}, 1.0));
  const Tensor y = autograd::embedding(indices_of({}, {0, 4}), weight);
  CHECK(y.shape() == Shape{0, 4, 3});
  autograd::backward(autograd::sum(y));
  CHECK(autograd::grad(weight).to_vector<float>() == std::vector<float>(6, 0.0f));
}

TEST_CASE("an Embedding learns the rows that are asked for, and leaves the others") {
  Initializer initializer(1);
  Embedding layer({.num_embeddings = 4, .embedding_dim = 2}, initializer);
  const Tensor indices = indices_of({1, 3}, {2}), target = Tensor::from<float>({1, 2, 3, 4}, {2, 2});
  const std::vector<float> before = layer.parameters().front().to_vector<float>();
  optim::SGD sgd(layer.parameters(), {.lr = 0.5});
  for (int step = 0; step < 30; ++step) {
    sgd.zero_grad();
    autograd::backward(autograd::mse_loss(layer(indices), target));
    sgd.step();
  }
  CHECK(autograd::mse_loss(layer(indices), target).item() < 1e-4);
  const std::vector<float> after = layer.parameters().front().to_vector<float>();
  CHECK((after[0] == before[0] && after[4] == before[4]));
}

TEST_CASE("the row of padding_idx begins as zeros, is looked up, and is not trained") {
  Initializer initializer(1), same(1);
  Embedding layer({.num_embeddings = 4, .embedding_dim = 2, .padding_idx = 2}, initializer);
  const Tensor weight = layer.parameters().front();
  const std::vector<float> drawn = same.normal({4, 2}, 1.0).to_vector<float>();
  CHECK(weight.to_vector<float>() ==
        std::vector{drawn[0], drawn[1], drawn[2], drawn[3], 0.0f, 0.0f, drawn[6], drawn[7]});
  CHECK(layer.describe() == "Embedding(4, 2, padding_idx 2)");
  autograd::backward(autograd::sum(layer(indices_of({2, 0, 2, 0, 3}, {5}))));
  CHECK(autograd::grad(weight).to_vector<float>() == std::vector<float>{2, 2, 0, 0, 0, 0, 1, 1});
  CHECK_THROWS_WITH(Embedding({.num_embeddings = 4, .embedding_dim = 2, .padding_idx = 4}, initializer),
                    ContainsText("Embedding: padding_idx must be from 0 to 3, one of the 4 embeddings, got 4"));
}

TEST_CASE("padding_idx keeps a row without a gradient on a device, too", "[cuda]") {
  if (!has_gpu()) return;
  const Tensor weight = autograd::set_requires_grad(Tensor::full({3, 2}, 1.0, {.device = kGpu}));
  const Tensor y = autograd::embedding(indices_of({1, 0, 1}, {3}).to(kGpu), weight, 1);
  autograd::backward(autograd::sum(y));
  CHECK(autograd::grad(weight).to_vector<float>() == std::vector<float>{1, 1, 0, 0, 0, 0});
}
