// Pooling beyond the op table: ties, NaN, shapes as in PyTorch, threads.
#include "tandem/kernels/pool/avg_pool2d.h"
#include "tandem/kernels/pool/global_avg_pool2d.h"
#include "tandem/kernels/pool/max_pool2d.h"
#include "tandem/kernels/pool/max_pool2d_implementations.h"
#include "tests/kernels/image_support.h"
#include "tests/support/catch.h"

#include <limits>

using namespace tandem;
using namespace tandem::test;
using kernels::Pool2dOptions;

namespace {

struct Pooled {
  Tensor y, indices;
};

Pooled max_pool(const Tensor& x, const Pool2dOptions& options, Layout layout) {
  const Shape shape = kernels::pool2d_output_shape("test", x.shape(), options);
  Pooled result{Tensor::full(shape, std::nan(""), {x.dtype(), layout, {}}),
                Tensor::full(shape, 77, {kernels::max_pool2d_index_dtype(options), layout, {}})};
  kernels::max_pool2d_forward(x, options, Out(result.y), Out(result.indices));
  return result;
}

}  // namespace

TEST_CASE("pooled shapes are PyTorch's") {
  const auto pooled = [](std::int64_t size, const Pool2dOptions& options) {
    return kernels::pool2d_output_shape("test", {1, 1, size, size}, options)[2];
  };
  CHECK(pooled(7, {}) == 3);
  CHECK(pooled(7, {.ceil_mode = true}) == 4);
  CHECK(pooled(7, {.kernel = 3, .stride = 2, .padding = 1}) == 4);
  // The window that would start in the padding behind the image is left out: 1 + ceil((2 + 2 - 2) / 3) = 2, less 1
  // each.
  CHECK(pooled(2, {.kernel = {2, 2}, .stride = {3, 3}, .padding = {1, 1}, .ceil_mode = true}) == 1);
  CHECK(pooled(5, {.kernel = {2, 2}, .stride = {3, 3}, .padding = {1, 1}, .ceil_mode = true}) == 3 - 1);
}

TEST_CASE("average pooling divides by the pixels that count") {
  const Tensor ones = Tensor::full({1, 1, 4, 4}, 1.0);
  const auto is_all = [&](const Pool2dOptions& options, double expected) {
    const Tensor y = poisoned_like(Tensor::empty(kernels::pool2d_output_shape("test", ones.shape(), options)));
    kernels::avg_pool2d_forward(ones, options, Out(y));
    for (const double value : y.to_vector<double>()) {
      if (!(std::abs(value - expected) <= 4 * 0x1p-24)) return false;
    }
    return y.numel() == 4;
  };
  // Each window has 2x2 pixels of the image and five of padding.
  Pool2dOptions options{.kernel = {3, 3}, .stride = {3, 3}, .padding = {1, 1}};
  CHECK(is_all(options, 4.0 / 9.0));
  options.count_include_pad = false;
  CHECK(is_all(options, 1.0));
  // What a last window reaches beyond the padding never counts.
  CHECK(is_all({.kernel = {2, 2}, .stride = {3, 3}, .ceil_mode = true}, 1.0));
}

TEST_CASE("of equal values the first wins, NaN wins over all, minus infinity loses") {
  const float nan = std::nanf(""), low = -std::numeric_limits<float>::infinity();
  // One 2x2 window per row.
  const std::vector<float> values = {1, 1, 1,        1, /**/ 0, 2, 2,        1,   /**/ 1, nan,
                                     5, 2, /**/ nan, 3, 1,      2, /**/ low, low, low,    low};
  const Layout layout = GENERATE(Layout::row_major, Layout::channels_last);
  const std::int64_t channels = GENERATE(1, 16, 19);
  const Tensor planes = Tensor::from(values, {5, 1, 2, 2}).expand({5, channels, 2, 2});
  const Tensor x = Tensor::empty({5, channels, 2, 2}, {.layout = layout});
  x.copy_from(planes);
  const Pooled pooled = max_pool(x, {}, layout);
  const std::uint8_t winners[] = {0, 1, 1, 0, 0};
  const float maxima[] = {1, 2, nan, nan, low};
  const auto y = pooled.y.to_vector<float>();
  const auto indices = pooled.indices.to_vector<std::uint8_t>();
  for (std::size_t i = 0; i < y.size(); ++i) {
    const std::size_t image = i / static_cast<std::size_t>(channels);
    CHECK(indices[i] == winners[image]);
    CHECK((y[i] == maxima[image] || (std::isnan(y[i]) && std::isnan(maxima[image]))));
  }
}

TEST_CASE("fast pooling agrees with the reference to the last bit") {
  const Pool2dOptions options =
      GENERATE(Pool2dOptions{}, Pool2dOptions{.kernel = 3, .stride = 2, .padding = 1},
               Pool2dOptions{.kernel = {3, 2}, .stride = {1, 3}, .padding = {1, 1}, .ceil_mode = true},
               Pool2dOptions{.kernel = {2, 2}, .stride = {3, 3}});
  const std::int64_t channels = GENERATE(3, 16, 37);
  const Tensor x = random_images({3, channels, 13, 10}, 1);
  const Pooled pooled = max_pool(x, options, Layout::channels_last);
  const Tensor y = poisoned_like(pooled.y), indices = empty_like(pooled.indices);
  kernels::reference::max_pool2d_forward(x, options, Out(y), Out(indices));
  CHECK(same_bits(pooled.y, y));
  CHECK(same_bits(pooled.indices, indices));
  // Whole numbers, so that the order of additions does not matter.
  const Tensor grad_y = empty_like(y);
  for (std::int64_t i = 0; i < y.numel(); ++i) Out(grad_y).data<float>()[i] = static_cast<float>(i % 9) - 4.0f;
  const Tensor fast = poisoned_like(x), slow = poisoned_like(x);
  kernels::max_pool2d_backward(grad_y, indices, options, Out(fast));
  kernels::reference::max_pool2d_backward(grad_y, indices, options, Out(slow));
  CHECK(fast.to_vector<float>() == slow.to_vector<float>());
  const Tensor sums = poisoned_like(Tensor::zeros({channels})), expected = Tensor::zeros({channels});
  kernels::max_pool2d_backward(grad_y, indices, options, Out(fast), Out(sums));
  for (std::int64_t i = 0; i < slow.numel(); ++i)  // channels_last: channels are neighbours
    Out(expected).data<float>()[i % channels] += slow.data<float>()[i];
  CHECK(sums.to_vector<float>() == expected.to_vector<float>());
}

TEST_CASE("pooling does not depend on the number of threads") {
  const Pool2dOptions options{.kernel = 3, .stride = 2, .padding = 1};
  const Tensor x = random_images({8, 32, 24, 24}, 2), grad_y = random_images({8, 32, 12, 12}, 3);
  const auto run = [&](int threads) {
    const ThreadScope scope(threads);
    const Pooled pooled = max_pool(x, options, Layout::channels_last);
    std::vector<Tensor> results{pooled.y, pooled.indices};
    for (int i = 0; i < 2; ++i) results.push_back(poisoned_like(x));
    for (int i = 0; i < 1; ++i) results.push_back(poisoned_like(grad_y));
    kernels::max_pool2d_backward(grad_y, pooled.indices, options, Out(results[2]));
    kernels::avg_pool2d_backward(grad_y, options, Out(results[3]));
    kernels::avg_pool2d_forward(x, options, Out(results[4]));
    return results;
  };
  const auto one = run(1), three = run(3);
  for (std::size_t i = 0; i < one.size(); ++i) CHECK(same_bits(one[i], three[i]));
}

TEST_CASE("backward refuses what does not belong together") {
  const Tensor x = Tensor::zeros({2, 3, 4, 4}), y = Tensor::zeros({2, 3, 2, 2});
  CHECK_THAT(error_of([&] { kernels::max_pool2d_backward(y, Tensor(), {}, Out(x)); }),
             ContainsText("needs the indices"));
  CHECK_THAT(error_of([&] { kernels::max_pool2d_backward(y, Tensor::zeros({2, 3, 2, 2}), {}, Out(x)); }),
             ContainsText("indices must be u8[2, 3, 2, 2], got f32[2, 3, 2, 2]"));
  const Tensor indices = Tensor::zeros({2, 3, 2, 2}, {.dtype = DType::u8});
  CHECK_THAT(error_of([&] { kernels::max_pool2d_backward(y, indices, {}, Out(x), Out(Tensor::zeros({2}))); }),
             ContainsText("sums must be dense f32 [3], got f32[2]"));
  CHECK_THAT(error_of([&] { kernels::avg_pool2d_backward(x, {}, Out(x)); }),
             ContainsText("pools to shape [2, 3, 2, 2]"));
  CHECK_THAT(error_of([&] { kernels::global_avg_pool2d_backward(y, Out(x)); }),
             ContainsText("pools to shape [2, 3, 1, 1]"));
}

TEST_CASE("the mean of an image of more pixels than float can count is right") {
  const Tensor x = Tensor::full({1, 1, 4'100, 4'100}, 1.0, {DType::f16, Layout::channels_last, {}});
  const Tensor y = Tensor::empty({1, 1, 1, 1}, x.options(Layout::channels_last));
  kernels::global_avg_pool2d_forward(x, Out(y));
  CHECK(y.item() == 1.0);  // in float 2^24 + 1 is 2^24: 0.998
}
