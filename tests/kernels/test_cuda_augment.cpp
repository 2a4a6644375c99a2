// Padding, cropping, mirroring and augment_images on CUDA against the references.
#include "tandem/core/device_query.h"
#include "tandem/kernels/augment/augment_images.h"
#include "tandem/kernels/augment/augment_images_implementations.h"
#include "tandem/kernels/augment/crop2d.h"
#include "tandem/kernels/augment/crop2d_implementations.h"
#include "tandem/kernels/augment/flip_horizontal.h"
#include "tandem/kernels/augment/flip_horizontal_implementations.h"
#include "tandem/kernels/augment/pad2d.h"
#include "tandem/kernels/augment/pad2d_implementations.h"
#include "tests/kernels/cuda_support.h"
#include "tests/support/catch.h"

#include <functional>

using namespace tandem;
using namespace tandem::kernels;
using namespace tandem::test;

namespace {

using Move = std::function<void(const Tensor& from, const Tensor& to)>;

struct MoveCase {
  std::string name;
  Shape from, to;
  Move run, reference;
};

std::vector<MoveCase> cases_of(std::int64_t n, std::int64_t c) {
  std::vector<MoveCase> cases;
  const Shape x{n, c, 5, 7};
  const auto pad = [&](const std::string& name, const Shape& small, const Pad2dOptions& options) {
    const Shape large = kernels::pad2d_output_shape(small, options);
    cases.push_back({name, small, large, [=](const auto& a, const auto& b) { kernels::pad2d(a, options, Out(b)); },
                     [=](const auto& a, const auto& b) { kernels::reference::pad2d(a, options, Out(b)); }});
    cases.push_back({name + " backward", large, small,
                     [=](const auto& a, const auto& b) { kernels::pad2d_backward(a, options, Out(b)); },
                     [=](const auto& a, const auto& b) { kernels::reference::pad2d_backward(a, options, Out(b)); }});
  };
  pad("pad", x, {.left = 1, .right = 2, .top = 3, .bottom = 0});
  pad("pad of nothing", {n, c, 0, 3}, {.left = 1, .right = 1, .top = 2, .bottom = 1});
  pad("reflect", x, {.left = 6, .right = 6, .top = 4, .bottom = 4, .mode = PadMode::reflect});
  pad("reflect one side", x, {.left = 2, .right = 0, .top = 0, .bottom = 3, .mode = PadMode::reflect});
  pad("reflect one row", {n, c, 1, 2}, {.left = 1, .right = 1, .mode = PadMode::reflect});
  const Shape window{n, c, 2, 3};
  cases.push_back({"crop", x, window, [](const auto& a, const auto& b) { kernels::crop2d(a, 2, 3, Out(b)); },
                   [](const auto& a, const auto& b) { kernels::reference::crop2d(a, 2, 3, Out(b)); }});
  cases.push_back({"crop backward", window, x,
                   [](const auto& a, const auto& b) { kernels::crop2d_backward(a, 2, 3, Out(b)); },
                   [](const auto& a, const auto& b) { kernels::reference::crop2d_backward(a, 2, 3, Out(b)); }});
  cases.push_back({"flip", x, x, [](const auto& a, const auto& b) { kernels::flip_horizontal(a, Out(b)); },
                   [](const auto& a, const auto& b) { kernels::reference::flip_horizontal(a, Out(b)); }});
  return cases;
}

/// What is wrong with a move, or nothing. Up to 9 numbers are added up where reflections are folded.
std::string check(const MoveCase& move, const Tensor& x, const Tensor& out, bool exact) {
  move.run(view_on_gpu(x), out);
  const Tensor expected = Tensor::empty(move.to, {.dtype = DType::f64});
  const Tensor sizes = Tensor::empty(move.to, {.dtype = DType::f64}), wide_x = wide(x), absolute = wide(x);
  for (std::int64_t i = 0; i < wide_x.numel(); ++i)
    Out(absolute).data<double>()[i] = std::abs(wide_x.data<double>()[i]);
  move.reference(wide_x, expected);
  move.reference(absolute, sizes);
  return first_outside(out, expected,
                       [&](std::size_t i) { return exact ? 0.0 : 9 * 0x1p-24 * sizes.data<double>()[i]; });
}

Tensor random_bytes(std::int64_t count, std::int64_t channels, std::int64_t height, std::int64_t width) {
  const Tensor images = Tensor::empty({count, channels, height, width}, {.dtype = DType::u8});
  const RandomKey key{.seed = 11};
  for (std::int64_t i = 0; i < images.numel(); ++i)
    Out(images).data<std::uint8_t>()[i] = static_cast<std::uint8_t>(key.below(static_cast<std::uint64_t>(i), 256));
  return images;
}

/// Everything at once, in every combination.
std::vector<ImageAugment> random_augments(std::uint64_t count) {
  const RandomKey key{3, RandomStream::test, 1};
  std::vector<ImageAugment> augments;
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto uniform = [&](std::uint64_t k) { return key.uniform(16 * i + k); };
    ImageAugment a{.shift_y = static_cast<int>(key.below(16 * i, 9)) - 4,
                   .shift_x = static_cast<int>(key.below(16 * i + 1, 9)) - 4,
                   .flip = uniform(2) < 0.5F,
                   .degrees = i % 3 == 0 ? 0.0F : 360 * uniform(3) - 180,
                   .brightness = i % 4 == 0 ? 1.0F : 2 * uniform(4),
                   .contrast = i % 5 == 0 ? 1.0F : 2 * uniform(5),
                   .saturation = i % 4 == 0 ? 1.0F : 2 * uniform(6)};
    constexpr std::array<std::uint8_t, 3> kOrders[] = {{0, 1, 2}, {2, 0, 1}, {1, 2, 0}, {2, 1, 0}};
    a.color_order = kOrders[i % 4];
    if (i % 7 < 4) a.offset = uniform(8) - 0.5F;
    if (i % 3 < 2) a.gain = 0.5F + uniform(9);
    const int top = static_cast<int>(key.below(16 * i + 7, 20)) - 4;
    a.cutout = {top, top - 2, top + static_cast<int>(i % 6), top + 5};
    augments.push_back(a);
  }
  return augments;
}

struct Normalisation {
  std::vector<float> mean, deviation;

  Normalisation(std::int64_t channels, float m, float d)
      : mean(static_cast<std::size_t>(channels), m), deviation(static_cast<std::size_t>(channels), d) {
    for (std::size_t c = 0; c < mean.size(); ++c) mean[c] *= 1.0F + 0.1F * static_cast<float>(c);
  }
  AugmentImagesOptions options(BorderMode border = BorderMode::zero) const { return {mean, deviation, border}; }
};

}  // namespace

TEST_CASE("pixels are moved on CUDA as by the references, in any layout", "[cuda][augment]") {
  if (!has_gpu()) return;
  for (const DType dtype : kKernelDTypes) {
    for (const std::int64_t channels : {1, 3, 8, 33}) {
      for (const MoveCase& move : cases_of(2, channels)) {
        for (const bool integers : {true, false}) {
          if (!integers && channels != 8) continue;
          INFO(move.name << ' ' << tandem::name_of(dtype) << " channels " << channels << (integers ? " integers" : ""));
          const Tensor x = random_values(move.from, dtype, integers, 1);
          CHECK(check(move, x, poisoned_on_gpu(move.to, dtype), integers) == "");
        }
      }
    }
  }
}

TEST_CASE("pixels are moved on CUDA from and to any strides", "[cuda][augment]") {
  if (!has_gpu()) return;
  for (const DType dtype : {DType::f32, DType::bf16}) {
    for (const MoveCase& move : cases_of(2, 8)) {
      for (const Kind kind : kKinds) {
        INFO(move.name << ' ' << tandem::name_of(dtype) << ' ' << name_of(kind));
        const Tensor x = random_view(kind, move.from, dtype, true, 2);
        CHECK(check(move, x, poisoned_on_gpu(move.to, dtype), true) == "");
        CHECK(check(move, x, poisoned_on_gpu(move.to, dtype, Layout::row_major, true), true) == "");
        if (kind == Kind::expanded) continue;
        CHECK(check(move, random_values(move.from, dtype, true, 3),
                    view_on_gpu(random_view(kind, move.to, dtype, true, 4)), true) == "");
      }
    }
    for (const MoveCase& move : cases_of(0, 3))
      CHECK(check(move, random_values(move.from, dtype, true, 1), poisoned_on_gpu(move.to, dtype), true) == "");
  }
}

TEST_CASE("moving pixels on CUDA refuses f64 and mixed devices", "[cuda][augment]") {
  if (!has_gpu()) return;
  for (const MoveCase& move : cases_of(1, 2)) {
    INFO(move.name);
    const auto zeros = [](const Shape& shape, Device device, DType dtype = DType::f32) {
      return Tensor::zeros(shape, {.dtype = dtype, .device = device});
    };
    CHECK_THAT(error_of([&] { move.run(zeros(move.from, kGpu, DType::f64), zeros(move.to, kGpu, DType::f64)); }),
               ContainsText(": CUDA kernels take f32, f16 and bf16, got f64"));
    CHECK_THAT(error_of([&] { move.run(zeros(move.from, kGpu), zeros(move.to, {})); }), ContainsText("one device"));
    CHECK_THAT(error_of([&] { move.run(zeros(move.from, {}), zeros(move.to, kGpu)); }), ContainsText("one device"));
  }
}

TEST_CASE("augment_images on CUDA moves bytes exactly", "[cuda][augment]") {
  if (!has_gpu()) return;
  const BorderMode border = GENERATE(BorderMode::zero, BorderMode::reflect);
  for (const std::int64_t channels : {1, 3, 4, 9}) {
    const Tensor source = random_bytes(3, channels, 9, 19), there = source.to(kGpu);
    const Normalisation to_bytes(channels, 0.0F, 1.0F / 255.0F);
    const std::vector<std::int64_t> indices{2, 0, 1, 2};
    const std::vector<ImageAugment> augments{
        {}, {.shift_y = 3, .shift_x = -4}, {.flip = true}, {.shift_x = 8, .flip = true, .cutout = {-1, 3, 4, 99}}};
    for (const DType dtype : kKernelDTypes) {
      INFO(channels << " channels, " << tandem::name_of(dtype));
      const Shape shape{4, channels, 9, 19};
      const Tensor out = poisoned_on_gpu(shape, dtype), plain = Tensor::empty(shape, {.dtype = dtype});
      kernels::augment_images(there, indices, augments, to_bytes.options(border), Out(out));
      kernels::reference::augment_images(source, indices, augments, to_bytes.options(border), Out(plain));
      CHECK(first_outside(out, plain, [](std::size_t) { return 0x1p-14; }) ==
            "");  // the reference divides by f32(1 / 255)
      std::vector<double> values = out.to_vector<double>();
      CHECK(std::all_of(values.begin(), values.end(), [](double v) { return v == std::floor(v); }));
      kernels::augment_images(there, indices, {}, to_bytes.options(border), Out(out));
      values = out.narrow(0, 1, 1).to_vector<double>();
      CHECK(values == source.narrow(0, 0, 1).to_vector<double>());
    }
  }
}

TEST_CASE("augment_images on CUDA agrees with the reference on everything at once", "[cuda][augment]") {
  if (!has_gpu()) return;
  const std::int64_t channels = GENERATE(1, 3, 4, 9);
  const BorderMode border = GENERATE(BorderMode::zero, BorderMode::reflect);
  constexpr std::int64_t kHeight = 13, kWidth = 23, kCount = 12;
  const Tensor source = random_bytes(5, channels, kHeight, kWidth), there = source.to(kGpu);
  const Normalisation normal(channels, 0.5F, 0.25F);
  const std::vector<ImageAugment> augments = random_augments(kCount);
  std::vector<std::int64_t> indices;
  for (std::int64_t i = 0; i < kCount; ++i) indices.push_back(i % 5);
  const Shape shape{kCount, channels, kHeight, kWidth};
  const Tensor plain = Tensor::empty(shape, {.dtype = DType::f64});
  kernels::reference::augment_images(source, indices, augments, normal.options(border), Out(plain));
  // Rotated coordinates up to 23 are wrong by a few 2^-20; three blends by factors below 2 double this each; /0.25;
  // a gain below 2.
  const double bound = 23 * 8 * 4 * 4 * 2 * 0x1p-23;
  for (const DType dtype : kKernelDTypes) {
    for (const Layout layout : {Layout::channels_last, Layout::row_major}) {
      INFO(channels << " channels, " << tandem::name_of(dtype));
      const Tensor out = poisoned_on_gpu(shape, dtype, layout), again = poisoned_on_gpu(shape, dtype, layout);
      kernels::augment_images(there, indices, augments, normal.options(border), Out(out));
      CHECK(first_outside(out, plain, [&](std::size_t) { return bound; }) == "");
      if (dtype != DType::f32) continue;
      kernels::augment_images(there, indices, augments, normal.options(border), Out(again));
      CHECK(equal_bits(out, again));
    }
  }
}

TEST_CASE("augment_images gives the same bits on CPU and CUDA", "[cuda][augment]") {
  if (!has_gpu()) return;
  const BorderMode border = GENERATE(BorderMode::zero, BorderMode::reflect);
  const bool only_moves = GENERATE(false, true);
  constexpr std::int64_t kCount = 30;
  std::vector<ImageAugment> augments = random_augments(kCount);
  std::vector<std::int64_t> indices;
  for (std::size_t i = 0; i < augments.size(); ++i) {
    const ImageAugment& a = augments[i];
    const int top = static_cast<int>(i) % 3;
    if (only_moves)
      augments[i] = {.shift_y = a.shift_y, .shift_x = a.shift_x, .flip = a.flip, .offset = a.offset, .gain = a.gain};
    if (i % 2 == 0) augments[i].cutout = {top, 1, top + 7, 8};
    indices.push_back(static_cast<std::int64_t>(i * 3 % 5));
  }
  for (const std::int64_t channels : {1, 3, 4, 9}) {
    const Tensor source = random_bytes(5, channels, 9, 11), there = source.to(kGpu);
    const Normalisation normal(channels, 0.4F, 0.25F);
    for (const DType dtype : kKernelDTypes) {
      INFO(channels << " channels, " << tandem::name_of(dtype));
      const Shape shape{kCount, channels, 9, 11};
      const Tensor out = poisoned_on_gpu(shape, dtype, Layout::channels_last);
      const Tensor here = Tensor::empty(shape, {.dtype = dtype, .layout = Layout::channels_last});
      kernels::augment_images(there, indices, augments, normal.options(border), Out(out));
      kernels::augment_images(source, indices, augments, normal.options(border), Out(here));
      CHECK(equal_bits(out, here));
    }
  }
}

TEST_CASE("augment_images on CUDA takes images of one pixel, and none", "[cuda][augment]") {
  if (!has_gpu()) return;
  const Tensor source = Tensor::full({2, 3, 1, 1}, 51, {.dtype = DType::u8, .device = kGpu});
  const Normalisation plain(3, 0.0F, 1.0F);
  const Tensor out = poisoned_on_gpu({1, 3, 1, 1}, DType::f32);
  kernels::augment_images(source, std::vector<std::int64_t>{1}, std::vector<ImageAugment>{{.contrast = 0.5F}},
                          plain.options(), Out(out));
  // Halfway to its own grey, whose weights add up to 0.9999.
  for (const float value : out.to_vector<float>()) CHECK(std::abs(value - 0.2f * 0.99995f) < 1e-6f);
  CHECK_NOTHROW(
      kernels::augment_images(source, {}, {}, plain.options(), Out(poisoned_on_gpu({0, 3, 1, 1}, DType::f32))));
}

TEST_CASE("augment_images on CUDA refuses f64 and mixed devices", "[cuda][augment]") {
  if (!has_gpu()) return;
  const Tensor here = random_bytes(2, 3, 4, 5), there = here.to(kGpu);
  const Normalisation plain(3, 0.0F, 1.0F);
  const std::vector<std::int64_t> first{0};
  const auto run = [&](const Tensor& source, const Tensor& out) {
    return error_of([&] { kernels::augment_images(source, first, {}, plain.options(), Out(out)); });
  };
  const Shape shape{1, 3, 4, 5};
  CHECK_THAT(run(there, Tensor::zeros(shape)), ContainsText("move one of them"));
  CHECK_THAT(run(here, Tensor::zeros(shape, {.device = kGpu})), ContainsText("move one of them"));
  CHECK_THAT(run(there, Tensor::zeros(shape, {.dtype = DType::f64, .device = kGpu})),
             ContainsText("augment_images: CUDA kernels take f32, f16 and bf16, got f64"));
}
