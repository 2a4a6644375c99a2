// Layer and group normalisation as functions and as layers, beyond the op table.
#include "tandem/autograd/functions.h"
#include "tandem/autograd/precision.h"
#include "tandem/autograd/variable.h"
#include "tandem/layers/layers.h"
#include "tests/kernels/image_support.h"
#include "tests/support/catch.h"

#include <cmath>

using namespace tandem;
using namespace tandem::layers;
using namespace tandem::test;

namespace {

/// The error of one call.
template <typename Make>
std::string refused(Make&& make) {
  try {
    make();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error at all";
}

/// Sums of squares of a - b and of b.
double relative_distance(const Tensor& a, const Tensor& b) {
  const std::vector<double> left = a.to_vector<double>(), right = b.to_vector<double>();
  double difference = 0.0, size = 0.0;
  for (std::size_t i = 0; i < left.size(); ++i) {
    difference += (left[i] - right[i]) * (left[i] - right[i]);
    size += right[i] * right[i];
  }
  return std::sqrt(difference / size);
}

}  // namespace

TEST_CASE("layers LayerNorm and GroupNorm are the functions, and say their sizes") {
  const Tensor x = random_images({3, 4, 5, 6}, 1);
  LayerNorm layer({.normalized_shape = {5, 6}, .eps = 1e-3});
  CHECK(layer(x).to_vector<float>() == autograd::layer_norm(x, {5, 6}, {}, {}, 1e-3).to_vector<float>());
  CHECK(layer.describe() == "LayerNorm([5, 6])");
  CHECK(layer.named_parameters().size() == 2);
  GroupNorm group({.groups = 2, .channels = 4});
  CHECK(group(x).to_vector<float>() == autograd::group_norm(x, 2).to_vector<float>());
  CHECK(group.describe() == "GroupNorm(2, 4)");
  CHECK(group.named_parameters().size() == 2);
  CHECK(LayerNorm({.normalized_shape = {6}, .bias = false}).named_parameters().size() == 1);
  CHECK(LayerNorm({.normalized_shape = {6}, .elementwise_affine = false}).named_parameters().empty());
  CHECK(GroupNorm({.groups = 1, .channels = 4, .affine = false}).named_parameters().empty());
}

TEST_CASE("LayerNorm and GroupNorm refuse bad sizes and inputs") {
  CHECK_THAT(refused([] { LayerNorm({}); }), ContainsText("LayerNorm: normalized_shape must be positive sizes"));
  CHECK_THAT(refused([] { LayerNorm({.normalized_shape = {3, 0}}); }), ContainsText("got [3, 0]"));
  CHECK_THAT(refused([] { LayerNorm({.normalized_shape = {3}, .eps = -1.0}); }),
             ContainsText("LayerNorm: eps must not be negative, got -1"));
  CHECK_THAT(refused([] { GroupNorm({.groups = 3, .channels = 4}); }),
             ContainsText("GroupNorm: 4 channels in 3 groups: both must be positive, and groups divide channels"));
  CHECK_THAT(refused([] { GroupNorm({.groups = 0, .channels = 4}); }), ContainsText("both must be positive"));
  CHECK_THAT(refused([] { GroupNorm({.groups = 2, .channels = 4, .eps = -1.0}); }),
             ContainsText("GroupNorm: eps must not be negative"));
  GroupNorm group({.groups = 2, .channels = 4});
  CHECK_THAT(refused([&] { group(Tensor::zeros({2, 6, 3})); }),
             ContainsText("GroupNorm(2, 4): needs an input [N, 4, ...], got f32[2, 6, 3]"));
}

TEST_CASE("layer_norm refuses sizes that only divide the last ones of the input") {
  CHECK_THROWS_WITH(autograd::layer_norm(Tensor::zeros({2, 8}), {4}, {}, {}, 1e-5),
                    ContainsText("normalized_shape [4] must be the last sizes of the input, got f32[2, 8]"));
}

TEST_CASE("a large mean does not spoil the variance of a row") {
  const Tensor noise = random_images({4, 1000}, 1, 1.0f), shifted = autograd::add(noise, Tensor::full({}, 4096.0));
  // The mean is rounded to f32, by 2^-12 at most, where the standard deviation is 1; a mean of squares would be lost.
  const Tensor exact = autograd::layer_norm(autograd::cast(shifted, DType::f64), {1000});
  CHECK(relative_distance(autograd::layer_norm(shifted, {1000}), exact) < 0x1p-11);
  const Tensor images = autograd::reshape(shifted, {4, 10, 10, 10});
  CHECK(relative_distance(autograd::group_norm(images, 1), autograd::reshape(exact, {4, 10, 10, 10})) < 0x1p-11);
}

TEST_CASE("rows of equal numbers become the bias, rows with NaN or infinity NaN") {
  const Tensor bias = Tensor::full({3}, 2.0);
  Tensor x = Tensor::from<float>({5, 5, 5, 1, std::nanf(""), 3, 1, INFINITY, 3}, {3, 3});
  const std::vector<float> y = autograd::layer_norm(x, {3}, {}, bias).to_vector<float>();
  CHECK((y[0] == 2.0f && y[1] == 2.0f && y[2] == 2.0f));
  for (std::size_t i = 3; i < 9; ++i) CHECK(std::isnan(y[i]));
}

TEST_CASE("parameters of halves stay f32 in mixed precision, and outputs are halves") {
  LayerNorm layer({.normalized_shape = {6}});
  GroupNorm group({.groups = 2, .channels = 4});
  layer.set_precision(autograd::Precision::bf16);
  group.set_precision(autograd::Precision::fp16);
  CHECK(layer.parameters().front().dtype() == DType::f32);
  CHECK(group.parameters().front().dtype() == DType::f32);
  CHECK(layer(Tensor::zeros({2, 6}, {.dtype = DType::bf16})).dtype() == DType::bf16);
  CHECK(group(Tensor::zeros({2, 4, 3}, {.dtype = DType::f16})).dtype() == DType::f16);
}

TEST_CASE("normalisation of no elements gives none, and gradients of 0") {
  for (const Shape& shape : {Shape{0, 4, 3}, Shape{2, 4, 0}}) {
    const Tensor x = autograd::set_requires_grad(Tensor::empty(shape));
    const Tensor weight = autograd::set_requires_grad(Tensor::full({4}, 1.0));
    const Tensor y = autograd::group_norm(x, 2, weight);
    CHECK(y.shape() == shape);
    autograd::backward(autograd::sum(y));
    CHECK(autograd::grad(weight).to_vector<float>() == std::vector<float>(4, 0.0f));
    CHECK(autograd::grad(x).shape() == shape);
  }
}

TEST_CASE("gradients of normalisation do not depend on the number of threads") {
  const Tensor values = random_images({90, 12, 11, 7}, 1, 2.0f), weights = random_images({90, 12, 11, 7}, 2);
  const auto run = [&](int threads) {
    const ThreadScope scope(threads);
    const Tensor x = autograd::set_requires_grad(values.clone());
    LayerNorm layer({.normalized_shape = {11, 7}});
    GroupNorm group({.groups = 3, .channels = 12});
    autograd::backward(autograd::sum(layer(group(x)) * weights));
    std::vector<Tensor> results{autograd::grad(x)};
    for (const Module* const module : {static_cast<Module*>(&layer), static_cast<Module*>(&group)}) {
      for (const Tensor& parameter : module->parameters()) results.push_back(autograd::grad(parameter));
    }
    return results;
  };
  const std::vector<Tensor> one = run(1), three = run(3);
  for (std::size_t i = 0; i < one.size(); ++i) CHECK(same_bits(one[i], three[i]));
}

TEST_CASE("frozen parameters get no gradient, and x gets the same one") {
  const Tensor values = random_images({5, 8}, 1), gradient = random_images({5, 8}, 2);
  const auto run = [&](bool frozen) {
    const Tensor x = autograd::set_requires_grad(values.clone());
    LayerNorm layer({.normalized_shape = {8}});
    layer.requires_grad(!frozen);
    autograd::backward(layer(x), gradient);
    CHECK(autograd::grad(layer.parameters().front()).defined() == !frozen);
    return autograd::grad(x);
  };
  CHECK(same_bits(run(true), run(false)));
}
