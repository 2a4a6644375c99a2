// mixup and CutMix: the distributions of what is drawn, and batches against the formula.
#include "tandem/data/loader.h"
#include "tandem/data/mixing.h"
#include "tandem/data/synthetic.h"
#include "tandem/data/tensor_dataset.h"
#include "tests/support/catch.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

using namespace tandem;
using namespace tandem::data;
using tandem::test::ContainsText;

namespace {

constexpr std::int64_t kImages = 50, kSide = 8;

ImageDataset images() { return make_synthetic({.count = kImages, .side = kSide}); }

struct Moments {
  double mean = 0.0, variance = 0.0;
};

Moments moments_of_shares(const MixOptions& options, std::int64_t count) {
  double sum = 0.0, squares = 0.0;
  for (std::int64_t i = 0; i < count; ++i) {
    const double share = static_cast<double>(draw_mix(options, 5, 0, i, kImages, 1 << 12, 1 << 12).share);
    sum += share;
    squares += share * share;
  }
  const double mean = sum / static_cast<double>(count);
  return {mean, squares / static_cast<double>(count) - mean * mean};
}

std::vector<std::int64_t> all_indices() {
  std::vector<std::int64_t> indices(kImages);
  for (std::int64_t i = 0; i < kImages; ++i) indices[static_cast<std::size_t>(i)] = kImages - 1 - i;
  return indices;
}

}  // namespace

TEST_CASE("shares are Beta(a, a) distributed: mean 1/2, variance 1 / (4 (2 a + 1))") {
  constexpr std::int64_t kCount = 20000;
  for (const double a : {0.05, 0.2, 1.0, 4.0}) {
    const double variance = 1.0 / (4.0 * (2.0 * a + 1.0));
    INFO("a " << a);
    const Moments found = moments_of_shares({.mixup = a, .classes = 10}, kCount);
    CHECK(std::abs(found.mean - 0.5) < 5 * std::sqrt(variance / kCount));
    // (share - 1/2)^2 is at most 1/4 and has that variance as its mean: its deviation is at most half of the root.
    CHECK(std::abs(found.variance - variance) < 5 * 0.5 * std::sqrt(variance / kCount));
  }
  // So small that the numbers it is made of underflow: 0 or 1, never NaN.
  for (std::int64_t i = 0; i < 1000; ++i) {
    const float share = draw_mix({.mixup = 1e-6, .classes = 10}, 5, 0, i, kImages, 8, 8).share;
    CHECK((share == 0.0f || share == 1.0f));
  }
}

TEST_CASE("what is drawn depends on seed, epoch and image, and partners are any image") {
  const MixOptions options{.mixup = 1.0, .cutmix = 1.0, .classes = 10};
  const auto of = [&](std::uint64_t seed, std::uint32_t epoch, std::int64_t index) {
    const ImageMix mix = draw_mix(options, seed, epoch, index, 1000, 32, 32);
    return std::tuple(mix.partner, mix.share, mix.box.top, mix.box.left, mix.box.bottom, mix.box.right);
  };
  CHECK(of(1, 2, 3) == of(1, 2, 3));
  CHECK(of(1, 2, 3) != of(2, 2, 3));
  CHECK(of(1, 2, 3) != of(1, 3, 3));
  CHECK(of(1, 2, 3) != of(1, 2, 4));
  std::map<std::int64_t, int> partners;
  int cut = 0;
  constexpr int kCount = 5000;
  for (int i = 0; i < kCount; ++i) {
    const ImageMix mix = draw_mix(options, 1, 0, i, 5, 32, 32);
    ++partners[mix.partner];
    cut += mix.box.empty() ? 0 : 1;
    if (mix.box.empty()) continue;
    CHECK((mix.box.top >= 0 && mix.box.left >= 0 && mix.box.bottom <= 32 && mix.box.right <= 32));
    const double area = (mix.box.bottom - mix.box.top) * (mix.box.right - mix.box.left);
    CHECK(static_cast<double>(mix.share) == Approx(1.0 - area / 1024).margin(1e-6));
  }
  CHECK(partners.size() == 5);
  for (const auto& [partner, count] : partners) CHECK(std::abs(count - kCount / 5) < 5 * std::sqrt(kCount * 0.16));
  // By chance half of them; some boxes are empty.
  CHECK(cut > kCount / 3);
  CHECK(cut < kCount / 2 + 5 * std::sqrt(kCount * 0.25));
}

TEST_CASE("mixed batches are the formula of the images that the data set gives") {
  const auto options = GENERATE(MixOptions{.mixup = 0.7, .classes = 10}, MixOptions{.cutmix = 1.0, .classes = 10});
  const ImageDataset set = images();
  const BatchOptions augmented{.augment = parse_augment("crop=2,flip"), .seed = 9};
  const auto indices = all_indices();
  const auto plain = set.get_batch(indices, 3, augmented);
  const auto mixed = mixed_batch(set, indices, 3, augmented, options);
  REQUIRE(mixed[0].shape() == plain[0].shape());
  REQUIRE(mixed[1].shape() == Shape{kImages, 10});
  const auto x = plain[0].to_vector<float>(), y = mixed[0].to_vector<float>();
  const auto labels = set.labels.to_vector<std::int64_t>();
  const auto probabilities = mixed[1].to_vector<float>();
  const std::int64_t pixels = kSide * kSide, channels = set.channels();
  for (std::int64_t i = 0; i < kImages; ++i) {
    const ImageMix mix = draw_mix(options, 9, 3, indices[static_cast<std::size_t>(i)], kImages, kSide, kSide);
    const std::int64_t partner_row = kImages - 1 - mix.partner;
    for (std::int64_t k = 0; k < channels * pixels; ++k) {
      const std::int64_t row = k % pixels / kSide, column = k % kSide;
      const float own = x[static_cast<std::size_t>(i * channels * pixels + k)];
      const float other = x[static_cast<std::size_t>(partner_row * channels * pixels + k)];
      const bool in_box =
          row >= mix.box.top && row < mix.box.bottom && column >= mix.box.left && column < mix.box.right;
      const float expected = options.mixup > 0.0 ? mix.share * own + (1.0f - mix.share) * other : in_box ? other : own;
      CHECK(y[static_cast<std::size_t>(i * channels * pixels + k)] == Approx(expected).margin(1e-6));
    }
    std::vector<float> target(10);
    target[static_cast<std::size_t>(labels[static_cast<std::size_t>(indices[static_cast<std::size_t>(i)])])] +=
        mix.share;
    target[static_cast<std::size_t>(labels[static_cast<std::size_t>(mix.partner)])] += 1.0f - mix.share;
    CHECK(std::equal(target.begin(), target.end(), probabilities.begin() + i * 10));
  }
}

TEST_CASE("a loader's mixed batches do not depend on ranks, threads or batch size, and halves are rounded once") {
  const auto make = [](int ranks, int rank, std::int64_t batch, DType dtype) {
    Loader loader(images(), {.global_batch_size = batch,
                             .augment = parse_augment("flip"),
                             .mix = {.mixup = 1.0, .cutmix = 1.0, .classes = 10},
                             .seed = 4,
                             .shuffle = true,
                             .share = {ranks, rank},
                             .threads = rank,
                             .dtype = dtype});
    loader.start(1);
    std::vector<float> pixels, labels;
    while (const auto given = loader.next()) {
      const auto x = given->images.to_vector<float>(), t = given->labels.to_vector<float>();
      pixels.insert(pixels.end(), x.begin(), x.end());
      labels.insert(labels.end(), t.begin(), t.end());
    }
    return std::pair(pixels, labels);
  };
  const auto whole = make(1, 0, kImages, DType::f32), small = make(1, 0, 7, DType::f32);
  CHECK(whole == small);
  const auto first = make(2, 0, kImages, DType::f32), second = make(2, 1, kImages, DType::f32);
  auto both = first;
  both.first.insert(both.first.end(), second.first.begin(), second.first.end());
  both.second.insert(both.second.end(), second.second.begin(), second.second.end());
  CHECK(both == whole);
  const auto half = make(1, 0, kImages, DType::bf16);
  CHECK(half.second == whole.second);  // labels stay in f32
  for (std::size_t i = 0; i < half.first.size(); ++i)
    CHECK(std::abs(half.first[i] - whole.first[i]) <= std::abs(whole.first[i]) * 0x1p-8f);
}

TEST_CASE("mixing that makes no sense is refused") {
  const auto error = [](const MixOptions& mix) { Loader loader(images(), {.mix = mix}); };
  CHECK_THROWS_WITH(error({.mixup = -1.0, .classes = 10}),
                    ContainsText("must be finite numbers and not negative, got -1"));
  CHECK_THROWS_WITH(error({.cutmix = std::nan(""), .classes = 10}), ContainsText("got nan"));
  CHECK_THROWS_WITH(error({.mixup = 1.0}), ContainsText("needs the number of classes (MixOptions::classes), got 0"));
  const TensorDataset points({Tensor::zeros({8, 2}), Tensor::zeros({8})});
  Loader of_points(points, {.mix = {.mixup = 1.0, .classes = 2}});
  of_points.start(0);
  CHECK_THROWS_WITH(of_points.next(), ContainsText("needs images f32 [n,C,H,W] and labels i64 [n]"));
  CHECK_THROWS_WITH(Loader(images(), {.mix = {.mixup = 1.0, .classes = 10},
                                      .transform = [](Example example, ExampleRandom&) { return example; }}),
                    ContainsText("without a transform"));
  Loader few(images(), {.mix = {.mixup = 1.0, .classes = 3}});
  few.start(0);
  CHECK_THROWS_WITH(few.next(), ContainsText("a label is "));
}
