// Batch norm over parts of a batch, against a batch norm for each part.
#include "tandem/autograd/functions.h"
#include "tandem/autograd/variable.h"
#include "tandem/kernels/activation/activation.h"
#include "tandem/layers/fusion.h"
#include "tandem/layers/layers.h"
#include "tests/kernels/image_support.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"

#include <cmath>

using namespace tandem;
using namespace tandem::layers;
using namespace tandem::test;

namespace {

std::vector<double> values_of(const Tensor& tensor) { return tensor.to_vector<double>(); }

/// Within some roundings of f32.
void check_near(const std::vector<double>& actual, const std::vector<double>& expected) {
  REQUIRE(actual.size() == expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i)
    CHECK(std::abs(actual[i] - expected[i]) <= 1e-6 * (1.0 + std::abs(expected[i])));
}

}  // namespace

TEST_CASE("batch norm of parts normalises each as a batch norm of its own would, forward and backward") {
  const Tensor values = random_images({6, 4, 3, 3}, 1), gradient = random_images({6, 4, 3, 3}, 2);
  for (const Activation activation : {Activation::none, Activation::relu, Activation::silu}) {
    BatchNorm2d ghost({.channels = 4, .activation = activation, .ghost_batch = 2});
    const Tensor x = autograd::set_requires_grad(values.clone());
    const Tensor y = ghost(x);
    autograd::backward(y, gradient);
    std::vector<double> grad_weight(4, 0.0), grad_bias(4, 0.0), means(4, 0.0), vars(4, 0.0);
    for (std::int64_t part = 0; part < 3; ++part) {
      BatchNorm2d own({.channels = 4, .momentum = 1.0, .activation = activation});
      const Tensor own_x = autograd::set_requires_grad(values.narrow(0, 2 * part, 2).clone());
      const Tensor own_y = own(own_x);
      autograd::backward(own_y, gradient.narrow(0, 2 * part, 2));
      CHECK(same_bits(y.detach().narrow(0, 2 * part, 2).clone(), own_y.detach()));
      CHECK(same_bits(autograd::grad(x).narrow(0, 2 * part, 2).clone(), autograd::grad(own_x)));
      const auto add = [](std::vector<double>& sum, const Tensor& more, double share) {
        for (std::size_t c = 0; c < sum.size(); ++c) sum[c] += share * values_of(more)[c];
      };
      add(grad_weight, autograd::grad(own.parameters()[0]), 1.0);
      add(grad_bias, autograd::grad(own.parameters()[1]), 1.0);
      add(means, own.named_buffers()[0].second, 1.0 / 3.0);
      add(vars, own.named_buffers()[1].second, 1.0 / 3.0);
    }
    check_near(values_of(autograd::grad(ghost.parameters()[0])), grad_weight);
    check_near(values_of(autograd::grad(ghost.parameters()[1])), grad_bias);
    for (std::size_t c = 0; c < 4; ++c) {
      means[c] *= 0.1;
      vars[c] = 0.9 + 0.1 * vars[c];
    }
    check_near(values_of(ghost.named_buffers()[0].second), means);
    check_near(values_of(ghost.named_buffers()[1].second), vars);
    CHECK(ghost.named_buffers()[2].second.item() == 1.0);
  }
}

TEST_CASE("one part of all images is a plain batch norm, and so is every evaluation") {
  const Tensor values = random_images({4, 5, 2, 3}, 3);
  BatchNorm2d whole({.channels = 5, .ghost_batch = 4}), plain({.channels = 5}),
      parts({.channels = 5, .ghost_batch = 2});
  CHECK(same_bits(whole(values), plain(values)));
  check_near(values_of(whole.named_buffers()[1].second), values_of(plain.named_buffers()[1].second));
  parts.load_state_dict(plain.state_dict());
  for (BatchNorm2d* const norm : {&plain, &parts}) norm->eval();
  const Tensor odd = random_images({3, 5, 2, 3}, 4);
  CHECK(same_bits(parts(odd), plain(odd)));
}

TEST_CASE("a fixed weight of parts gets no gradient, and no convolution leaves moments for them") {
  BatchNorm2d norm({.channels = 4, .train_weight = false, .ghost_batch = 2});
  CHECK(norm.describe() == "BatchNorm2d(4, fixed weight, of 2 images)");
  const Tensor y = norm(autograd::set_requires_grad(random_images({4, 4, 2, 2}, 5)));
  autograd::backward(y, Tensor::full({4, 4, 2, 2}, 1.0));
  CHECK_FALSE(autograd::grad(norm.parameters()[0]).defined());
  CHECK(autograd::grad(norm.parameters()[1]).to_vector<float>() == std::vector<float>(4, 16.0f));
}

TEST_CASE("batches that parts do not divide are refused in one line") {
  BatchNorm2d norm({.channels = 4, .ghost_batch = 4});
  CHECK_THAT(error_of([&] { norm(Tensor::zeros({6, 4, 2, 2})); }),
             ContainsText("ghost_batch_norm: a batch of 6 cannot be cut into parts of 4; choose a batch size"));
  CHECK_THAT(error_of([] { BatchNorm2d({.channels = 4, .ghost_batch = -1}); }),
             ContainsText("ghost_batch must be a number of images"));
}
