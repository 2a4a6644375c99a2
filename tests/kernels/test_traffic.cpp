// What ops tell a timeline of the bytes that they move, against counts by hand.
#include "tandem/core/timeline.h"
#include "tandem/kernels/activation/relu.h"
#include "tandem/kernels/augment/augment_images.h"
#include "tandem/kernels/dropout/dropout.h"
#include "tandem/kernels/elementwise/add.h"
#include "tandem/kernels/loss/softmax_cross_entropy.h"
#include "tandem/kernels/norm/batch_norm.h"
#include "tandem/kernels/optimizer/adam.h"
#include "tandem/kernels/optimizer/sgd.h"
#include "tandem/kernels/pool/global_avg_pool2d.h"
#include "tandem/kernels/pool/max_pool2d.h"
#include "tests/support/catch.h"

#include <array>

using namespace tandem;

namespace {

/// Bytes that the timeline has of what `work` does; operations must be 0.
template <typename Work>
double bytes_of(Work&& work) {
  start_timeline();
  {
    const ProfileRange range("op");
    work();
  }
  const Timeline timeline = stop_timeline();
  REQUIRE(timeline.events.size() == 1);
  CHECK(timeline.events[0].flops == 0.0);
  return timeline.events[0].bytes;
}

Tensor images(std::int64_t n, std::int64_t c, std::int64_t side, DType dtype = DType::f32) {
  return Tensor::full({n, c, side, side}, 0.5, {.dtype = dtype, .layout = Layout::channels_last});
}

Tensor vector(std::int64_t count, DType dtype = DType::f32) { return Tensor::full({count}, 1.0, {.dtype = dtype}); }

}  // namespace

TEST_CASE("traffic: element-wise ops move their operands and their result") {
  const Tensor a = vector(1000), b = vector(1000), c = vector(1000);
  CHECK(bytes_of([&] { kernels::add(a, b, Out(c)); }) == 3 * 4000);
  CHECK(bytes_of([&] { kernels::relu_forward(a, Out(c)); }) == 2 * 4000);
  CHECK(bytes_of([&] { kernels::relu_backward(a, b, Out(c)); }) == 3 * 4000);
  CHECK(bytes_of([&] { kernels::dropout_forward(a, 0.5, {}, Out(c)); }) == 2 * 4000);
  const Tensor half = vector(1000, DType::f16), result = vector(1000, DType::f16);
  CHECK(bytes_of([&] { kernels::relu_forward(half, Out(result)); }) == 2 * 2000);
}

TEST_CASE("traffic: pooling moves large images and small ones") {
  const Tensor x = images(2, 3, 8), y = images(2, 3, 4), mean = images(2, 3, 1);
  const kernels::Pool2dOptions options{.kernel = {2, 2}, .stride = {2, 2}};
  const Tensor indices = Tensor::zeros(y.shape(), {.dtype = DType::u8, .layout = Layout::channels_last});
  CHECK(bytes_of([&] { kernels::max_pool2d_forward(x, options, Out(y), Out(indices)); }) == 4 * (384 + 96) + 96);
  CHECK(bytes_of([&] { kernels::max_pool2d_backward(y, indices, options, Out(x), {}); }) == 4 * (384 + 96) + 96);
  CHECK(bytes_of([&] { kernels::global_avg_pool2d_forward(x, Out(mean)); }) == 4 * (384 + 6));
}

TEST_CASE("traffic: batch norm moves images once each way, and what it has of each channel") {
  const Tensor x = images(4, 16, 8), y = images(4, 16, 8), grad_x = images(4, 16, 8);
  const Tensor weight = vector(16), bias = vector(16), mean = vector(16), var = vector(16), saved = vector(16),
               deviation = vector(16);
  constexpr double kImages = 4.0 * 4 * 16 * 8 * 8, kChannels = 4.0 * 16;
  // Running mean and variance are read and written.
  CHECK(bytes_of([&] {
          kernels::batch_norm_forward_train(x, weight, bias, Out(mean), Out(var), {}, Out(y), Out(saved),
                                            Out(deviation));
        }) == 2 * kImages + 8 * kChannels);
  CHECK(bytes_of([&] {
          kernels::batch_norm_forward_eval(x, weight, bias, mean, var, {}, Out(y), Out(saved), Out(deviation));
        }) == 2 * kImages + 6 * kChannels);
  CHECK(bytes_of([&] {
          kernels::batch_norm_backward(x, weight, bias, saved, deviation, {}, y, Out(grad_x), Out(weight), Out(bias));
        }) == 3 * kImages + 5 * kChannels);
}

TEST_CASE("traffic: the loss moves logits, probabilities and labels") {
  const Tensor logits = Tensor::zeros({8, 10}), probabilities = Tensor::zeros({8, 10}), loss = Tensor::zeros({});
  const Tensor labels = Tensor::zeros({8}, {.dtype = DType::i64});
  CHECK(bytes_of([&] { kernels::softmax_cross_entropy_forward(logits, labels, 0.0, Out(loss), Out(probabilities)); }) ==
        2 * 320 + 64 + 4);
  CHECK(bytes_of([&] { kernels::softmax_cross_entropy_backward(probabilities, labels, 0.0, loss, Out(logits)); }) ==
        2 * 320 + 64 + 4);
}

TEST_CASE("traffic: an optimizer reads gradients, and reads and writes parameters and state") {
  const Tensor w = vector(1000), g = vector(1000), m = vector(1000), v = vector(1000);
  const std::array plain{kernels::SgdItem{.parameter = Out(w), .gradient = g, .momentum_buffer = {}}};
  CHECK(bytes_of([&] { kernels::sgd_step(plain, {.lr = 0.1}); }) == 3 * 4000);
  const std::array momentum{kernels::SgdItem{.parameter = Out(w), .gradient = g, .momentum_buffer = Out(m)}};
  CHECK(bytes_of([&] { kernels::sgd_step(momentum, {.lr = 0.1, .momentum = 0.9}); }) == 5 * 4000);
  const std::array adam{kernels::AdamItem{
      .parameter = Out(w), .gradient = g, .exp_avg = Out(m), .exp_avg_sq = Out(v), .max_exp_avg_sq = {}}};
  CHECK(bytes_of([&] { kernels::adam_step(adam, {.lr = 0.1}); }) == 7 * 4000);
  // With a master, the half parameter is only written.
  const Tensor half = vector(1000, DType::f16), half_gradient = vector(1000, DType::f16);
  const std::array mixed{
      kernels::SgdItem{.parameter = Out(half), .gradient = half_gradient, .momentum_buffer = {}, .master = Out(w)}};
  CHECK(bytes_of([&] { kernels::sgd_step(mixed, {.lr = 0.1}); }) == 2 * 2000 + 2 * 4000);
}

TEST_CASE("traffic: augmentation reads bytes and writes elements") {
  const Tensor source = Tensor::zeros({5, 3, 8, 8}, {.dtype = DType::u8}), out = images(2, 3, 8);
  const std::array<std::int64_t, 2> indices{4, 0};
  constexpr std::array<float, 3> kMean{}, kDeviation{1.0f, 1.0f, 1.0f};
  const kernels::AugmentImagesOptions options{.mean = kMean, .deviation = kDeviation};
  CHECK(bytes_of([&] { kernels::augment_images(source, indices, {}, options, Out(out)); }) == 2 * 192 * (1 + 4));
}
