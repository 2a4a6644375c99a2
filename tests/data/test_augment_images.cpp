// The augmentation kernel: moves are exact, mixing agrees with a plain implementation.
#include "tandem/kernels/augment/augment_images.h"
#include "tandem/kernels/augment/augment_images_implementations.h"

#include "tandem/core/random.h"
#include "tests/support/catch.h"

#include <cmath>
#include <limits>
#include <numeric>

using namespace tandem;
using namespace tandem::kernels;

namespace {

constexpr float kUnit[] = {0.0F, 0.0F, 0.0F, 0.0F, 0.0F};
constexpr float kOver255[] = {1 / 255.0F, 1 / 255.0F, 1 / 255.0F, 1 / 255.0F, 1 / 255.0F};

/// Options under which the output is the byte itself, or a value v in [0, 1] becomes 255 v.
AugmentImagesOptions bytes_out(std::int64_t channels, BorderMode border = BorderMode::zero) {
  return {{kUnit, static_cast<std::size_t>(channels)}, {kOver255, static_cast<std::size_t>(channels)}, border};
}

Tensor random_images(std::int64_t count, std::int64_t channels, std::int64_t height, std::int64_t width) {
  Tensor images = Tensor::empty({count, channels, height, width}, {.dtype = DType::u8});
  const RandomKey key{11, RandomStream::test, 0};
  for (std::int64_t i = 0; i < images.numel(); ++i)
    Out(images).data<std::uint8_t>()[i] = static_cast<std::uint8_t>(key.bits(static_cast<std::uint64_t>(i)));
  return images;
}

Tensor poisoned(const Shape& shape, DType dtype = DType::f32, Layout layout = Layout::channels_last) {
  return Tensor::full(shape, std::numeric_limits<double>::quiet_NaN(), {.dtype = dtype, .layout = layout});
}

/// The value at (y, x) of a plane as the border mode continues it.
double continued(const Tensor& images, std::int64_t n, std::int64_t c, std::int64_t y, std::int64_t x,
                 BorderMode border) {
  const std::int64_t height = images.size(2), width = images.size(3);
  if (border == BorderMode::zero && (y < 0 || y >= height || x < 0 || x >= width)) return 0;
  y = y < 0 ? -y : y >= height ? 2 * height - 2 - y : y;
  x = x < 0 ? -x : x >= width ? 2 * width - 2 - x : x;
  return images.data<std::uint8_t>()[((n * images.size(1) + c) * height + y) * width + x];
}

double at(const Tensor& out, std::int64_t n, std::int64_t c, std::int64_t y, std::int64_t x) {
  return static_cast<double>(
      out.data<float>()[n * out.stride(0) + c * out.stride(1) + y * out.stride(2) + x * out.stride(3)]);
}

}  // namespace

TEST_CASE("crop and flip move bytes exactly") {
  const std::int64_t channels = GENERATE(1, 2, 3, 5);
  const BorderMode border = GENERATE(BorderMode::zero, BorderMode::reflect);
  const bool use_reference = GENERATE(false, true);
  constexpr std::int64_t kHeight = 7, kWidth = 9;
  const Tensor images = random_images(4, channels, kHeight, kWidth);
  std::vector<ImageAugment> augments;
  std::vector<std::int64_t> indices;
  for (int dy = -4; dy <= 4; dy += 2)
    for (int dx = -4; dx <= 4; ++dx)
      for (const bool flip : {false, true}) {
        augments.push_back({.shift_y = dy, .shift_x = dx, .flip = flip});
        indices.push_back(static_cast<std::int64_t>(augments.size() * 7 % 4));
      }
  const Tensor out = poisoned({static_cast<std::int64_t>(indices.size()), channels, kHeight, kWidth});
  const auto run = use_reference ? reference::augment_images : kernels::augment_images;
  run(images, indices, augments, bytes_out(channels, border), Out(out));
  double worst = 0;
  for (std::size_t i = 0; i < indices.size(); ++i)
    for (std::int64_t c = 0; c < channels; ++c)
      for (std::int64_t y = 0; y < kHeight; ++y)
        for (std::int64_t x = 0; x < kWidth; ++x) {
          const std::int64_t from_x = augments[i].flip ? kWidth - 1 - x : x;
          const double expected =
              continued(images, indices[i], c, y + augments[i].shift_y, from_x + augments[i].shift_x, border);
          const double error = std::abs(at(out, static_cast<std::int64_t>(i), c, y, x) - expected);
          worst = std::isnan(error) ? 1e9 : std::max(worst, error);
        }
  CHECK(worst <= 255 * 4 * 0x1p-24);  // the two roundings of 1/255 and of its product
}

TEST_CASE("shifts beyond the image show black only") {
  const Tensor images = random_images(1, 3, 4, 5);
  const Tensor out = poisoned({3, 3, 4, 5});
  augment_images(images, std::vector<std::int64_t>{0, 0, 0},
                 std::vector<ImageAugment>{{.shift_y = 4}, {.shift_x = -5}, {.shift_y = -1000, .shift_x = 1000}},
                 bytes_out(3), Out(out));
  for (const double value : out.to_vector<double>()) CHECK(value == 0.0);
}

TEST_CASE("normalisation is (v / 255 - mean) / deviation") {
  const Tensor images = Tensor::from<std::uint8_t>(std::vector<std::uint8_t>{0, 255, 51, 102, 153, 204}, {1, 3, 1, 2});
  const std::vector<float> mean{0.5F, 0.25F, 0.0F}, deviation{0.5F, 0.25F, 2.0F};
  const Tensor out = poisoned({1, 3, 1, 2});
  augment_images(images, std::vector<std::int64_t>{0}, {}, {mean, deviation}, Out(out));
  const std::vector<double> expected{-1, 1, -0.2, 0.6, 0.3, 0.4};
  for (std::size_t i = 0; i < 6; ++i) CHECK(std::abs(out.to_vector<double>()[i] - expected[i]) < 4 * 0x1p-24 * 2);
}

TEST_CASE("rotation by a right angle moves pixels counter-clockwise") {
  const Tensor images = random_images(1, 1, 6, 6);
  const Tensor out = poisoned({2, 1, 6, 6});
  augment_images(images, std::vector<std::int64_t>{0, 0}, std::vector<ImageAugment>{{.degrees = 90}, {.degrees = -180}},
                 bytes_out(1), Out(out));
  for (std::int64_t y = 0; y < 6; ++y)
    for (std::int64_t x = 0; x < 6; ++x) {
      // Coordinates up to 6 carry errors of a few 2^-22, and neighbours differ by at most 255.
      CHECK(std::abs(at(out, 0, 0, y, x) - continued(images, 0, 0, x, 5 - y, BorderMode::zero)) < 255 * 0x1p-18);
      CHECK(std::abs(at(out, 1, 0, y, x) - continued(images, 0, 0, 5 - y, 5 - x, BorderMode::zero)) < 255 * 0x1p-18);
    }
}

TEST_CASE("colour changes follow their definitions") {
  const Tensor images = Tensor::from<std::uint8_t>(std::vector<std::uint8_t>{255, 51, 0, 102, 102, 255}, {1, 3, 1, 2});
  const auto run = [&](const ImageAugment& augment) {
    const Tensor out = poisoned({1, 3, 1, 2});
    augment_images(images, std::vector<std::int64_t>{0}, std::vector<ImageAugment>{augment}, bytes_out(3), Out(out));
    return out.to_vector<double>();
  };
  const auto clamp = [](double v) { return std::clamp(v, 0.0, 255.0); };
  const std::vector<double> pixels = images.to_vector<double>();
  const double grey[2] = {0.2989 * 255 + 0.114 * 102, 0.2989 * 51 + 0.587 * 102 + 0.114 * 255};
  const double mean = (grey[0] + grey[1]) / 2;
  const auto bright = run({.brightness = 1.5F}), contrast = run({.contrast = 0.5F}),
             saturated = run({.saturation = 1.75F});
  const auto ordered = run({.brightness = 2.0F, .saturation = 0.0F, .color_order = {0, 1, 2}});
  const auto reversed = run({.brightness = 2.0F, .saturation = 0.0F, .color_order = {2, 1, 0}});
  const double tolerance = 255 * 16 * 0x1p-24;  // about ten roundings of values below 2
  for (std::size_t i = 0; i < 6; ++i) {
    CHECK(std::abs(bright[i] - clamp(1.5 * pixels[i])) < tolerance);
    CHECK(std::abs(contrast[i] - clamp(0.5 * pixels[i] + 0.5 * mean)) < tolerance);
    CHECK(std::abs(saturated[i] - clamp(1.75 * pixels[i] - 0.75 * grey[i % 2])) < tolerance);
    CHECK(std::abs(reversed[i] - clamp(2 * grey[i % 2])) < tolerance);
  }
  CHECK(std::abs(ordered[0] - (0.2989 * 255 + 0.114 * 204)) < tolerance);  // brightness first clamps red
}

TEST_CASE("the mean grey of a large image is no sum that overflows") {
  // Of more than 2^23 pixels, of which every other is white.
  constexpr std::int64_t kSide = 4100;
  const Tensor images = Tensor::full({1, 1, kSide, kSide}, 255, {.dtype = DType::u8});
  images.narrow(3, 0, kSide / 2, 2).fill(0.0);
  const Tensor out = poisoned({1, 1, kSide, kSide});
  augment_images(images, std::vector<std::int64_t>{0}, std::vector<ImageAugment>{{.contrast = 0.5F}}, bytes_out(1),
                 Out(out));
  const double tolerance = 255 * 16 * 0x1p-24;
  CHECK(std::abs(at(out, 0, 0, 0, 0) - 0.25 * 255) < tolerance);
  CHECK(std::abs(at(out, 0, 0, kSide - 1, kSide - 1) - 0.75 * 255) < tolerance);
}

TEST_CASE("normalised values are shifted and scaled, and not clamped, before the cutout") {
  const std::int64_t channels = GENERATE(1, 3, 4);
  const bool use_reference = GENERATE(false, true);
  const bool mixes = GENERATE(false, true);
  const Tensor images = random_images(1, channels, 5, 6);
  const std::vector<float> mean(static_cast<std::size_t>(channels), 0.5F),
      deviation(static_cast<std::size_t>(channels), 0.25F);
  ImageAugment augment{.offset = 3.5F, .gain = -1.75F, .cutout = {1, 1, 3, 3}};
  augment.brightness = mixes ? 0.5F : 1.0F;
  const Tensor out = poisoned({1, channels, 5, 6});
  const auto run = use_reference ? reference::augment_images : kernels::augment_images;
  run(images, std::vector<std::int64_t>{0}, std::vector<ImageAugment>{augment}, {mean, deviation}, Out(out));
  for (std::int64_t c = 0; c < channels; ++c)
    for (std::int64_t y = 0; y < 5; ++y)
      for (std::int64_t x = 0; x < 6; ++x) {
        const bool is_cut = y >= 1 && y < 3 && x >= 1 && x < 3;
        const double unit = continued(images, 0, c, y, x, BorderMode::zero) / 255.0 * (mixes ? 0.5 : 1.0);
        const double expected = is_cut ? 0.0 : ((unit - 0.5) / 0.25 + 3.5) * -1.75;
        // Values below 6 through six roundings, times 1.75.
        CHECK(std::abs(at(out, 0, c, y, x) - expected) <= (is_cut ? 0.0 : 6 * 6 * 1.75 * 0x1p-24));
      }
}

TEST_CASE("the fast path agrees with the reference on everything at once") {
  const std::int64_t channels = GENERATE(1, 3, 4);
  const BorderMode border = GENERATE(BorderMode::zero, BorderMode::reflect);
  constexpr std::int64_t kHeight = 13, kWidth = 17, kCount = 40;
  const Tensor images = random_images(5, channels, kHeight, kWidth);
  const RandomKey key{3, RandomStream::test, 1};
  std::vector<ImageAugment> augments;
  std::vector<std::int64_t> indices;
  for (std::uint64_t i = 0; i < kCount; ++i) {
    const auto uniform = [&](std::uint64_t k) { return key.uniform(16 * i + k); };
    ImageAugment a{.shift_y = static_cast<int>(key.below(16 * i, 9)) - 4,
                   .shift_x = static_cast<int>(key.below(16 * i + 1, 9)) - 4,
                   .flip = uniform(2) < 0.5F,
                   .degrees = i % 3 == 0 ? 0.0F : 360 * uniform(3) - 180,
                   .brightness = i % 4 == 0 ? 1.0F : 2 * uniform(4),
                   .contrast = i % 5 == 0 ? 1.0F : 2 * uniform(5),
                   .saturation = i % 4 == 0 ? 1.0F : 2 * uniform(6)};
    if (i % 2 == 0) a.color_order = {2, 0, 1};
    if (i % 7 < 4) a.offset = uniform(8) - 0.5F;
    if (i % 3 < 2) a.gain = 0.5F + uniform(9);
    const int top = static_cast<int>(key.below(16 * i + 7, 20)) - 4;
    a.cutout = {top, top - 2, top + static_cast<int>(i % 6), top + 5};
    augments.push_back(a);
    indices.push_back(static_cast<std::int64_t>(i % 5));
  }
  const Shape shape{kCount, channels, kHeight, kWidth};
  const Tensor fast = poisoned(shape), plain = poisoned(shape, DType::f64, Layout::row_major);
  const std::vector<float> mean(static_cast<std::size_t>(channels), 0.5F),
      deviation(static_cast<std::size_t>(channels), 0.25F);
  augment_images(images, indices, augments, {mean, deviation, border}, Out(fast));
  augment_images(images, indices, augments, {mean, deviation, border}, Out(plain));
  // Rotated coordinates up to 17 are wrong by a few 2^-20; three blends by factors below 2 double this each; /0.25;
  // a gain below 2.
  const double bound = 17 * 8 * 4 * 4 * 2 * 0x1p-23;
  const auto a = fast.to_vector<double>(), b = plain.to_vector<double>();
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) worst = std::isnan(a[i]) ? 1e9 : std::max(worst, std::abs(a[i] - b[i]));
  CHECK(worst < bound);
}

TEST_CASE("cutout clears its box and nothing else") {
  const Tensor images = Tensor::full({1, 3, 8, 8}, 200, {.dtype = DType::u8});
  const Tensor out = poisoned({2, 3, 8, 8});
  augment_images(images, std::vector<std::int64_t>{0, 0},
                 std::vector<ImageAugment>{{.cutout = {2, 3, 6, 7}}, {.cutout = {-5, 6, 2, 99}}}, bytes_out(3),
                 Out(out));
  const auto values = out.to_vector<double>();
  CHECK(std::count(values.begin(), values.begin() + 192, 0.0) == 3 * 16);
  CHECK(std::count(values.begin() + 192, values.end(), 0.0) == 3 * 4);
  CHECK((at(out, 0, 0, 1, 3) != 0 && at(out, 0, 0, 2, 3) == 0 && at(out, 0, 2, 5, 6) == 0 && at(out, 0, 2, 5, 7) != 0));
}

TEST_CASE("augment_images refuses what does not fit") {
  const Tensor images = random_images(2, 3, 4, 5);
  const Tensor out = poisoned({1, 3, 4, 5});
  const std::vector<std::int64_t> first{0};
  const auto run = [&](const Tensor& source, std::vector<std::int64_t> indices, std::vector<ImageAugment> augments,
                       const AugmentImagesOptions& options,
                       const Tensor& to) { augment_images(source, indices, augments, options, Out(to)); };
  CHECK_NOTHROW(run(images, first, {}, bytes_out(3), out));
  CHECK_THROWS_AS(run(images, {2}, {}, bytes_out(3), out), Error);
  CHECK_THROWS_AS(run(images, {-1}, {}, bytes_out(3), out), Error);
  CHECK_THROWS_AS(run(images, {0, 1}, {}, bytes_out(3), out), Error);
  CHECK_THROWS_AS(run(images, first, {{}, {}}, bytes_out(3), out), Error);
  CHECK_THROWS_AS(run(images, first, {}, bytes_out(2), out), Error);
  CHECK_THROWS_AS(run(images, first, {{.shift_y = 4}}, bytes_out(3, BorderMode::reflect), out), Error);
  CHECK_THROWS_AS(run(images, first, {{.color_order = {0, 0, 1}}}, bytes_out(3), out), Error);
  CHECK_THROWS_AS(run(images.transpose(2, 3), first, {}, bytes_out(3), poisoned({1, 3, 5, 4})), Error);
  CHECK_THROWS_AS(run(out, first, {}, bytes_out(3), out), Error);
  CHECK_THROWS_AS(run(images, first, {}, bytes_out(3), Tensor::zeros({1, 3, 4, 5}, {.dtype = DType::i64})), Error);
  CHECK_NOTHROW(run(images, {}, {}, bytes_out(3), Tensor::empty({0, 3, 4, 5})));
}
