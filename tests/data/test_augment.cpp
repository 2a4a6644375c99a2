// Augmentation options from text, and the random draws.
#include "tandem/data/augment.h"

#include "tests/data/files.h"
#include "tests/support/catch.h"

#include <cmath>
#include <map>

using namespace tandem;
using namespace tandem::data;
using namespace tandem::test;
using kernels::BorderMode;
using kernels::ImageAugment;

namespace {

constexpr int kDraws = 20000;

template <typename Visit>
void draw_many(const std::string& text, Visit&& visit) {
  const AugmentOptions options = parse_augment(text);
  for (int i = 0; i < kDraws; ++i) visit(draw_augment(options, 7, 2, i, 32, 28));
}

/// Each of `counts` is expected kDraws / size times: within five deviations of the binomial.
template <typename Key>
void check_even(const std::map<Key, int>& counts, std::size_t size) {
  REQUIRE(counts.size() == size);
  const double share = 1.0 / static_cast<double>(size);
  for (const auto& [key, count] : counts)
    CHECK(std::abs(count - kDraws * share) < 5 * std::sqrt(kDraws * share * (1 - share)));
}

}  // namespace

TEST_CASE("augmentations are read from text") {
  CHECK(!parse_augment("").any());
  CHECK(!parse_augment("none").any());
  const AugmentOptions all = parse_augment("crop,flip,jitter,rotate,cutout");
  CHECK(all.crop == 4);
  CHECK(all.crop_border == BorderMode::zero);
  CHECK(all.flip);
  CHECK(all.jitter == 0.2F);
  CHECK(all.rotation == 15.0F);
  CHECK(all.cutout == 8);
  const AugmentOptions sized = parse_augment("cutout=12,crop-reflect=3,rotate=7.5");
  CHECK(sized.cutout == 12);
  CHECK(sized.crop == 3);
  CHECK(sized.crop_border == BorderMode::reflect);
  CHECK(sized.rotation == 7.5F);
  CHECK(!sized.flip);
  for (const std::string text : {"none", "crop=4,flip", "crop-reflect=2,flip,rotate=7.5,jitter=0.25,cutout=16"})
    CHECK(to_string(parse_augment(text)) == text);
}

TEST_CASE("what is no augmentation is refused, naming the nearest") {
  const auto refusal = [](const std::string& text) { return error_of([&] { parse_augment(text); }); };
  CHECK_THAT(refusal("crop,flop"), ContainsText("unknown augmentation 'flop': did you mean flip?"));
  CHECK_THAT(refusal("zzzzzz"), ContainsText("unknown augmentation 'zzzzzz' (choices: crop"));
  CHECK_THAT(refusal("crop,"), ContainsText("unknown augmentation ''"));
  CHECK_THAT(refusal("crop,crop-reflect"), ContainsText("given twice"));
  CHECK_THAT(refusal("flip,flip"), ContainsText("given twice"));
  CHECK_THAT(refusal("flip=1"), ContainsText("takes no size"));
  for (const std::string text :
       {"crop=-1", "crop=x", "crop=", "crop=4x", "cutout=0", "rotate=181", "jitter=nan", "crop=99999"})
    CHECK_THAT(refusal(text), ContainsText("is not a number from"));
}

TEST_CASE("a draw depends on seed, epoch and image only, and each kind keeps its numbers") {
  const AugmentOptions all = parse_augment("crop,flip,jitter,rotate,cutout");
  const auto shift_of = [](const ImageAugment& a) { return std::pair{a.shift_y, a.shift_x}; };
  int same_seed = 0, same_epoch = 0, same_image = 0;
  for (int i = 0; i < 1000; ++i) {
    const ImageAugment a = draw_augment(all, 1, 1, i, 32, 32);
    const ImageAugment again = draw_augment(all, 1, 1, i, 32, 32);
    CHECK((shift_of(a) == shift_of(again) && a.degrees == again.degrees && a.saturation == again.saturation));
    CHECK(shift_of(a) == shift_of(draw_augment(parse_augment("crop"), 1, 1, i, 32, 32)));
    same_seed += draw_augment(all, 2, 1, i, 32, 32).degrees == a.degrees;
    same_epoch += draw_augment(all, 1, 2, i, 32, 32).degrees == a.degrees;
    same_image += draw_augment(all, 1, 1, i + 1, 32, 32).degrees == a.degrees;
  }
  CHECK(same_seed + same_epoch + same_image < 3);
}

TEST_CASE("crops, flips and orders are drawn evenly") {
  std::map<int, int> shifts_y, shifts_x, flips;
  std::map<std::array<std::uint8_t, 3>, int> orders;
  draw_many("crop,flip,jitter", [&](const ImageAugment& a) {
    ++shifts_y[a.shift_y];
    ++shifts_x[a.shift_x];
    ++flips[a.flip];
    ++orders[a.color_order];
  });
  check_even(shifts_y, 9);
  check_even(shifts_x, 9);
  check_even(flips, 2);
  check_even(orders, 6);
  CHECK(shifts_y.begin()->first == -4);
  CHECK(shifts_y.rbegin()->first == 4);
}

TEST_CASE("angles and factors fill their ranges") {
  float least_angle = 0, most_angle = 0, least = 9, most = 0;
  double angles = 0;
  draw_many("rotate=30,jitter=0.4", [&](const ImageAugment& a) {
    least_angle = std::min(least_angle, a.degrees);
    most_angle = std::max(most_angle, a.degrees);
    angles += a.degrees;
    for (const float factor : {a.brightness, a.contrast, a.saturation}) {
      least = std::min(least, factor);
      most = std::max(most, factor);
    }
  });
  // The chance that 20,000 draws leave 1/1000 of a range empty is e^-20.
  CHECK((least_angle >= -30 && least_angle < -29.94F && most_angle <= 30 && most_angle > 29.94F));
  CHECK((least >= 0.6F && least < 0.6008F && most <= 1.4F && most > 1.3992F));
  CHECK(std::abs(angles / kDraws) < 5 * 60 / std::sqrt(12.0 * kDraws));
  draw_many("jitter=3", [&](const ImageAugment& a) { CHECK(a.brightness >= 0.0F); });
}

TEST_CASE("cutout boxes are squares around every pixel, clipped at the border") {
  std::map<int, int> centres;
  draw_many("cutout=8", [&](const ImageAugment& a) {
    const kernels::PixelBox& box = a.cutout;
    CHECK((box.top >= 0 && box.left >= 0 && box.bottom <= 32 && box.right <= 28));
    // Full size unless clipped.
    CHECK((box.bottom - box.top == 8 || box.top == 0 || box.bottom == 32));
    CHECK((box.right - box.left == 8 || box.left == 0 || box.right == 28));
    CHECK((box.bottom - box.top >= 4 && box.right - box.left >= 4));
    ++centres[box.top == 0 ? box.bottom - 4 : box.top + 4];
  });
  check_even(centres, 32);
}
