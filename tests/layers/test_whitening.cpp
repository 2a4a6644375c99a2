// Whitening: moments of patches by plain loops, filters by what they do to patches, and the layer.
#include "tandem/autograd/functions.h"
#include "tandem/autograd/precision.h"
#include "tandem/autograd/variable.h"
#include "tandem/comm/ddp/distributed_data_parallel.h"
#include "tandem/layers/layers.h"
#include "tandem/layers/models/models.h"
#include "tandem/layers/symmetric_eigen.h"
#include "tandem/optim/sgd.h"
#include "tests/comm/thread_ranks.h"
#include "tests/kernels/image_support.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"

#include <cmath>

using namespace tandem;
using namespace tandem::layers;
using namespace tandem::test;

namespace {

/// Small integers, so that sums of products are exact.
Tensor integer_images(const Shape& shape) {
  const RandomKey key{.seed = 8, .stream = RandomStream::test};
  std::vector<float> values(static_cast<std::size_t>(element_count(shape)));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(key.below(i, 9)) - 4.0f;
  return Tensor::from(values, shape);
}

/// As photographs: neighbours are alike, and so are the channels; one direction has next to nothing.
Tensor smooth_images(const Shape& shape) {
  const auto [n, channels, height, width] = std::array{shape[0], shape[1], shape[2], shape[3]};
  const RandomKey key{.seed = 4, .stream = RandomStream::test};
  std::vector<float> values;
  std::uint64_t drawn = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const float level = key.normal(drawn++), across = key.normal(drawn++), down = key.normal(drawn++);
    for (std::int64_t c = 0; c < channels; ++c) {
      for (std::int64_t y = 0; y < height; ++y) {
        for (std::int64_t x = 0; x < width; ++x) {
          const float slope = across * static_cast<float>(x) + down * static_cast<float>(y);
          values.push_back(level + 0.1f * slope + (c == 0 ? 0.01f : 0.2f) * key.normal(drawn++));
        }
      }
    }
  }
  return Tensor::from(values, shape);
}

/// P^T P / n by plain loops over all patches.
std::vector<double> moments_by_loops(const Tensor& images, const HeightWidth& kernel) {
  const auto values = images.to_vector<double>();
  const Shape& shape = images.shape();
  const auto at = [&](std::int64_t n, std::int64_t c, std::int64_t y, std::int64_t x) {
    return values[static_cast<std::size_t>(((n * shape[1] + c) * shape[2] + y) * shape[3] + x)];
  };
  const std::int64_t size = shape[1] * kernel.height * kernel.width;
  std::vector<double> sums(static_cast<std::size_t>(size * size), 0.0);
  std::int64_t patches = 0;
  for (std::int64_t n = 0; n < shape[0]; ++n) {
    for (std::int64_t y = 0; y + kernel.height <= shape[2]; ++y) {
      for (std::int64_t x = 0; x + kernel.width <= shape[3]; ++x) {
        std::vector<double> patch;
        for (std::int64_t c = 0; c < shape[1]; ++c)
          for (std::int64_t r = 0; r < kernel.height; ++r)
            for (std::int64_t s = 0; s < kernel.width; ++s) patch.push_back(at(n, c, y + r, x + s));
        for (std::size_t i = 0; i < patch.size(); ++i)
          for (std::size_t j = 0; j < patch.size(); ++j) sums[i * patch.size() + j] += patch[i] * patch[j];
        ++patches;
      }
    }
  }
  for (double& sum : sums) sum /= static_cast<double>(patches);
  return sums;
}

}  // namespace

TEST_CASE("second moments of patches are those of plain loops") {
  const Tensor images = integer_images({70, 3, 6, 7});
  for (const HeightWidth& kernel :
       {HeightWidth(2), HeightWidth(1), HeightWidth(1, 3), HeightWidth(4), HeightWidth(6, 7)}) {
    INFO(kernel.height << "x" << kernel.width);
    const auto expected = moments_by_loops(images, kernel);
    CHECK(patch_second_moments(images, kernel) == expected);
    CHECK(patch_second_moments(images.contiguous(Layout::channels_last), kernel) == expected);
    CHECK(patch_second_moments(in_dtype(images, DType::f16), kernel) == expected);
    CHECK(patch_second_moments(to_f64(images), kernel) == expected);
  }
  CHECK(patch_second_moments(integer_images({2, 1, 3, 3}), 2) == moments_by_loops(integer_images({2, 1, 3, 3}), 2));
}

TEST_CASE("second moments have the same bits on any number of threads") {
  const Tensor images = random_images({200, 3, 5, 5}, 1);
  const auto on = [&](int threads) {
    const ThreadScope scope(threads);
    return patch_second_moments(images, 2);
  };
  CHECK(on(1) == on(3));
}

TEST_CASE("whitening filters make the patches of their images uncorrelated, at one scale") {
  constexpr double kRounding = 0x1p-24;  // of the filters, which are f32
  for (const double eps : {5e-4, 1e-2, 1e-9}) {
    for (const HeightWidth& kernel : {HeightWidth(2), HeightWidth(1, 3), HeightWidth(3)}) {
      INFO("eps " << eps << ", " << kernel.height << "x" << kernel.width);
      const Tensor images = smooth_images({40, 3, 9, 9});
      const auto moments = patch_second_moments(images, kernel);
      const Tensor filters = whitening_filters(images, kernel, eps);
      const std::size_t size = static_cast<std::size_t>(3 * kernel.height * kernel.width);
      REQUIRE(filters.shape() == Shape{2 * static_cast<std::int64_t>(size), 3, kernel.height, kernel.width});
      const auto w = filters.to_vector<double>();
      for (std::size_t i = 0; i < size * size; ++i) REQUIRE(w[size * size + i] == -w[i]);
      double previous = std::numeric_limits<double>::infinity(), trace = 0.0, sum = 0.0;
      for (std::size_t i = 0; i < size; ++i) {
        double squares = 0.0;
        for (std::size_t k = 0; k < size; ++k) squares += w[i * size + k] * w[i * size + k];
        const double lambda = 1.0 / squares - eps;  // v_i is of length 1
        CHECK(lambda <= previous * (1.0 + 4.0 * kRounding) + 4.0 * kRounding * eps);
        previous = lambda;
        sum += lambda;
        trace += moments[i * size + i];
        for (std::size_t j = 0; j <= i; ++j) {
          // Each element of a filter is rounded once; what f64 rounds is 2^-29 times as much.
          double product = 0.0, magnitude = 0.0;
          for (std::size_t k = 0; k < size; ++k) {
            for (std::size_t l = 0; l < size; ++l) {
              product += w[i * size + k] * moments[k * size + l] * w[j * size + l];
              magnitude += std::abs(w[i * size + k] * moments[k * size + l] * w[j * size + l]);
            }
          }
          const double expected = i == j ? lambda / (lambda + eps) : 0.0;
          CHECK(std::abs(product - expected) <= 3.0 * kRounding * magnitude + 4.0 * kRounding);
        }
      }
      CHECK(std::abs(sum - trace) <= 4.0 * kRounding * (trace + static_cast<double>(size) * eps));
    }
  }
}

TEST_CASE("directions that no image has get small filters, not large ones") {
  // All numbers of a patch are equal: one eigenvalue is 12 * 0.25, the others are 0.
  const Tensor filters = whitening_filters(Tensor::full({3, 3, 4, 4}, 0.5), 2, 1e-2);
  const auto w = filters.to_vector<double>();
  double first = 0.0, others = 0.0;
  for (std::size_t i = 0; i < 144; ++i) (i < 12 ? first : others) += w[i] * w[i];
  CHECK(first == Approx(1.0 / 3.01));
  CHECK(others == Approx(11.0 / 1e-2));  // 1 / sqrt(eps) each, and no more
  for (std::size_t i = 0; i < 12; ++i) CHECK(w[i] == Approx(std::sqrt(1.0 / 12.0 / 3.01)));
  const auto zero = whitening_filters(Tensor::zeros({1, 1, 2, 2}), 2, 0.25).to_vector<float>();
  for (std::size_t i = 0; i < 16; ++i) CHECK(zero[i] == (i % 5 == 0 ? 2.0f : 0.0f));
}

TEST_CASE("a whitening layer's outputs are uncorrelated, with a mean square of 1") {
  Initializer initializer(1);
  Whitening2d layer({.in = 3, .kernel = 2, .eps = 1e-6}, initializer);
  const Tensor images = random_images({30, 3, 8, 8}, 2);
  layer.initialize(images);
  CHECK(layer.weight().to_vector<float>() == whitening_filters(images, 2, 1e-6).to_vector<float>());
  const Tensor y = layer(images);
  REQUIRE(y.shape() == Shape{30, 24, 7, 7});
  const auto values = y.to_vector<double>();
  // A number of 12 products and a bias strays by 14 roundings of its largest magnitude, which |x| <= 5 and the filter's
  // length limit; patches of mean square 1 have a mean magnitude of 1 at most.
  double length = 0.0;
  const auto w = layer.weight().to_vector<double>();
  for (std::size_t i = 0; i < 24; ++i) {
    double sum = 0.0;
    for (std::size_t k = 0; k < 12; ++k) sum += std::abs(w[i * 12 + k]);
    length = std::max(length, sum);
  }
  const double bound = 2.0 * 14.0 * 0x1p-24 * 5.0 * length + 2e-6;  // and eps, where the eigenvalues are above 1/2
  for (std::size_t i = 0; i < 24; ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      double sum = 0.0;
      for (std::size_t n = 0; n < 30; ++n)
        for (std::size_t p = 0; p < 49; ++p) sum += values[(n * 24 + i) * 49 + p] * values[(n * 24 + j) * 49 + p];
      const double expected = i == j ? 1.0 : i == j + 12 ? -1.0 : 0.0;
      CHECK(std::abs(sum / (30.0 * 49.0) - expected) <= bound);
    }
  }
}

TEST_CASE("a whitening layer is a convolution with a frozen weight and a trained bias") {
  Initializer initializer(1), same(1);
  Whitening2d layer({.in = 2, .kernel = {2, 3}}, initializer);
  const Conv2d drawn({.in = 2, .out = 24, .kernel = {2, 3}}, same);
  CHECK(layer.describe() == "Whitening2d(2, 24, kernel 2x3)");
  CHECK(layer.weight().to_vector<float>() == drawn.weight().to_vector<float>());
  CHECK(layer.bias().to_vector<float>() == std::vector<float>(24, 0.0f));
  const NamedTensors state = layer.state_dict();
  REQUIRE(state.size() == 2);
  CHECK((state[0].first == "weight" && state[1].first == "bias"));
  CHECK_FALSE(autograd::requires_grad(layer.weight()));
  CHECK(autograd::requires_grad(layer.bias()));

  layer.initialize(random_images({5, 2, 6, 6}, 1));
  layer.bias().detach().copy_from(random_images({1, 24, 1, 1}, 3).view({24}));
  const Tensor x = autograd::set_requires_grad(random_images({4, 2, 6, 7}, 5));
  const Tensor y = layer(x), gradient = random_images({4, 24, 5, 5}, 6);
  autograd::backward(y, gradient);
  const Tensor x2 = autograd::set_requires_grad(x.detach().clone()),
               bias = autograd::set_requires_grad(layer.bias().detach().clone());
  const Tensor expected = autograd::conv2d(x2, layer.weight(), bias, {});
  autograd::backward(expected, gradient);
  CHECK(same_bits(y, expected));
  CHECK(same_bits(autograd::grad(x), autograd::grad(x2)));
  CHECK(same_bits(autograd::grad(layer.bias()), autograd::grad(bias)));
  CHECK_FALSE(autograd::grad(layer.weight()).defined());

  // No optimizer changes the weight, whatever its decay.
  const auto before = layer.weight().to_vector<float>(), bias_before = layer.bias().to_vector<float>();
  optim::SGD(layer.parameters(), {.lr = 0.1, .weight_decay = 0.5}).step();
  CHECK(layer.weight().to_vector<float>() == before);
  CHECK(layer.bias().to_vector<float>() != bias_before);
}

TEST_CASE("a whitening layer may be padded, without negatives and bias, or draw its bias") {
  Initializer initializer(1), same(1);
  Whitening2d layer({.in = 2, .kernel = 3, .eps = 1e-2, .padding = 1, .with_negatives = false, .with_bias = false},
                    initializer);
  CHECK(layer.describe() == "Whitening2d(2, 18, kernel 3x3)");
  CHECK(layer.state_dict().size() == 1);
  CHECK_FALSE(layer.bias().defined());
  const Tensor images = random_images({5, 2, 6, 6}, 1);
  layer.initialize(images);
  const Tensor both = whitening_filters(images, 3, 1e-2);
  CHECK(layer.weight().to_vector<float>() == both.narrow(0, 0, 18).clone().to_vector<float>());
  const Tensor x = random_images({4, 2, 6, 7}, 5);
  CHECK(same_bits(layer(x), autograd::conv2d(x, layer.weight(), {}, {.padding = 1})));

  Whitening2d drawn({.in = 2, .kernel = 3, .draw_bias = true}, same);
  const Tensor bias = drawn.bias();
  for (const float value : bias.to_vector<float>()) CHECK(std::abs(value) <= 1.0f / std::sqrt(18.0f));
  CHECK(bias.to_vector<float>() != std::vector<float>(36, 0.0f));
  CHECK_THAT(error_of([&] { Whitening2d({.padding = -1}, initializer); }),
             ContainsText("padding must not be negative"));
  CHECK_THAT(error_of([&] { Whitening2d({.with_bias = false, .draw_bias = true}, initializer); }),
             ContainsText("there is no bias to draw; set with_bias"));
}

TEST_CASE("a whitening layer keeps its filters in halves, and takes images of other dtypes") {
  Initializer initializer(1);
  Whitening2d layer({}, initializer);
  const Tensor images = random_images({6, 3, 6, 6}, 1);
  layer.initialize(images);
  const Tensor rounded = in_dtype(layer.weight().detach(), DType::f16);
  layer.set_precision(autograd::Precision::fp16);
  CHECK(layer.weight().to_vector<float>() == rounded.to_vector<float>());
  CHECK_FALSE(autograd::requires_grad(layer.weight()));
  layer.weight().detach().zero();
  layer.initialize(images);  // into the half weight
  CHECK(layer.weight().to_vector<float>() == rounded.to_vector<float>());
  CHECK(layer(in_dtype(images, DType::f16)).dtype() == DType::f16);
}

TEST_CASE("initialize_from finds the whitening layers of a network, and leaves others alone") {
  const Tensor images = smooth_images({10, 3, 16, 16});
  const auto network = make_model({.name = "airbench94", .image_size = 16, .width = 0.125, .seed = 1});
  const auto untouched = make_model({.name = "airbench94", .image_size = 16, .width = 0.125, .seed = 1});
  REQUIRE(whitening_layers(*network).size() == 1);
  initialize_from(*network, images);
  const NamedTensors after = network->state_dict(), before = untouched->state_dict();
  REQUIRE(after.size() == before.size());
  CHECK(after[0].first == "0.weight");
  CHECK(after[0].second.to_vector<float>() == whitening_filters(images, 2).to_vector<float>());
  for (std::size_t i = 1; i < after.size(); ++i) CHECK(same_bits(after[i].second, before[i].second));

  const auto other = make_model({.name = "small_cnn", .image_size = 16, .seed = 1});
  const auto weights = other->parameters()[0].to_vector<float>();
  CHECK(whitening_layers(*other).empty());
  initialize_from(*other, images);
  CHECK(other->parameters()[0].to_vector<float>() == weights);
}

TEST_CASE("replicas get the frozen weights of rank 0") {
  std::vector<std::vector<float>> weights(2), own(2);
  run_thread_ranks(2, {}, {}, [&](comm::ProcessGroup& group) {
    const auto rank = static_cast<std::size_t>(group.rank());
    Initializer initializer(rank);
    Whitening2d layer({}, initializer);
    layer.initialize(random_images({4, 3, 5, 5}, static_cast<std::uint32_t>(rank)));
    own[rank] = layer.weight().to_vector<float>();
    const comm::DistributedDataParallel replicas(group, layer.named_parameters(), layer.named_buffers());
    weights[rank] = layer.weight().to_vector<float>();
    CHECK(replicas.gradient_count() == 1);
  });
  CHECK(own[0] != own[1]);
  CHECK(weights[0] == own[0]);
  CHECK(weights[1] == own[0]);
}

TEST_CASE("whitening refuses what it cannot be made of") {
  const auto moments = [](const Tensor& images, const HeightWidth& kernel) {
    return error_of([&] { patch_second_moments(images, kernel); });
  };
  CHECK_THAT(moments(Tensor(), 2), ContainsText("needs images [N, C, H, W] of floating numbers, got undefined tensor"));
  CHECK_THAT(moments(Tensor::zeros({3, 4, 4}), 2), ContainsText("got f32[3, 4, 4]"));
  CHECK_THAT(moments(Tensor::zeros({1, 3, 4, 4}, {.dtype = DType::u8}), 2), ContainsText("got u8[1, 3, 4, 4]"));
  CHECK_THAT(moments(Tensor::zeros({0, 3, 4, 4}), 2), ContainsText("f32[0, 3, 4, 4] hold no patch of 2x2"));
  CHECK_THAT(moments(Tensor::zeros({1, 3, 4, 1}), 2), ContainsText("hold no patch of 2x2: give one image or more"));
  CHECK_THAT(moments(Tensor::zeros({1, 3, 4, 4}), {2, 0}), ContainsText("all sizes must be positive"));
  CHECK_THAT(moments(Tensor::zeros({1, 65, 4, 4}), 4), ContainsText("has more than 1024 numbers; choose a smaller"));
  for (const double eps : {0.0, -1.0, std::nan(""), std::numeric_limits<double>::infinity()})
    CHECK_THAT(error_of([&] { whitening_filters(Tensor::zeros({1, 3, 4, 4}), 2, eps); }),
               ContainsText("whitening_filters: eps must be a finite number above 0"));
  CHECK_THAT(error_of([] { whitening_filters(Tensor::full({1, 3, 4, 4}, std::nan("")), 2); }),
             ContainsText("whitening_filters: the images f32[1, 3, 4, 4] hold NaN or infinity"));
  Initializer initializer(1);
  Whitening2d layer({}, initializer);
  CHECK_THAT(
      error_of([&] { layer.initialize(Tensor::zeros({2, 1, 4, 4})); }),
      ContainsText("Whitening2d(3, 24, kernel 2x2): needs images [N, 3, H, W] to be made of, got f32[2, 1, 4, 4]"));
}
