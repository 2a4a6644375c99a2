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
  CHECK((!all.flip_alternates && !all.cutout_inside && !all.offset && !all.gain));
  const AugmentOptions fast = parse_augment("cutout-inside,gain,offset,flip-alternating");
  CHECK((fast.flip && fast.flip_alternates && fast.cutout_inside));
  CHECK(fast.cutout == 8);
  CHECK(fast.offset == 0.14F);
  CHECK(fast.gain == 0.13F);
  for (const std::string text : {"offset", "gain=0.5", "flip-alternating", "cutout-inside"})
    CHECK(parse_augment(text).any());
  for (const std::string text :
       {"none", "crop=4,flip", "crop-reflect=2,flip,rotate=7.5,jitter=0.25,cutout=16",
        "crop-reflect=2,flip-alternating,rotate=7.5,jitter=0.25,offset=0.1399,gain=0.1308,cutout-inside=12"})
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
  CHECK(refusal("flip-alternating,flip") ==
        "augmentation 'flip' is given twice (flip and flip-alternating count as one): name each once");
  CHECK(refusal("cutout,cutout-inside=12") ==
        "augmentation 'cutout-inside' is given twice (cutout and cutout-inside count as one): name each once");
  CHECK(refusal("jitter,jitter") == "augmentation 'jitter' is given twice: name each once");
  CHECK(refusal("flip-alternating=1") == "augmentation 'flip-alternating' takes no size, got 'flip-alternating=1'");
  CHECK_THAT(refusal("flip-alternates"), ContainsText("did you mean flip-alternating?"));
  for (const std::string text : {"cutout-inside=0", "gain=1.5", "offset=-0.1", "offset=", "crop=-1", "crop=x",
                                 "crop=", "crop=4x", "cutout=0", "rotate=181", "jitter=nan", "crop=99999"})
    CHECK_THAT(refusal(text), ContainsText("is not a number from"));
}

TEST_CASE("a draw depends on seed, epoch and image only, and each kind keeps its numbers") {
  const AugmentOptions all = parse_augment("crop,flip,jitter,rotate,offset,gain,cutout");
  const auto shift_of = [](const ImageAugment& a) { return std::pair{a.shift_y, a.shift_x}; };
  int same_seed = 0, same_epoch = 0, same_image = 0;
  for (int i = 0; i < 1000; ++i) {
    const ImageAugment a = draw_augment(all, 1, 1, i, 32, 32);
    const ImageAugment again = draw_augment(all, 1, 1, i, 32, 32);
    CHECK((shift_of(a) == shift_of(again) && a.degrees == again.degrees && a.saturation == again.saturation));
    CHECK(shift_of(a) == shift_of(draw_augment(parse_augment("crop"), 1, 1, i, 32, 32)));
    CHECK(a.offset == draw_augment(parse_augment("offset"), 1, 1, i, 32, 32).offset);
    CHECK(a.gain == draw_augment(parse_augment("gain"), 1, 1, i, 32, 32).gain);
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

TEST_CASE("a reflecting crop shows all its windows evenly") {
  std::map<std::pair<int, int>, int> windows;
  draw_many("crop-reflect=2", [&](const ImageAugment& a) { ++windows[{a.shift_y, a.shift_x}]; });
  check_even(windows, 25);
  CHECK(windows.begin()->first == std::pair(-2, -2));
  CHECK(windows.rbegin()->first == std::pair(2, 2));
}

TEST_CASE("alternating flips are drawn for epoch 0, and each epoch mirrors against the one before") {
  const AugmentOptions alternating = parse_augment("crop,flip-alternating"), plain = parse_augment("crop,flip");
  std::map<bool, int> first, pairs, seeds;
  bool was_flipped = false;
  for (int i = 0; i < kDraws; ++i) {
    const auto flip_in = [&](std::uint32_t epoch, std::uint64_t seed = 7) {
      return draw_augment(alternating, seed, epoch, i, 32, 28).flip;
    };
    const bool flipped = flip_in(0);
    REQUIRE(flipped == draw_augment(plain, 7, 0, i, 32, 28).flip);
    for (const std::uint32_t epoch : {1u, 2u, 3u, 4u, 99u, 100u, 4294967294u, 4294967295u})
      REQUIRE(flip_in(epoch) == (flipped != (epoch % 2 == 1)));
    ++first[flipped];
    ++pairs[flipped == was_flipped];  // of neighbours
    ++seeds[flipped == flip_in(0, 8)];
    was_flipped = flipped;
    // The rest is drawn anew in each epoch, as ever.
    const ImageAugment crop = draw_augment(alternating, 7, 3, i, 32, 28), other = draw_augment(plain, 7, 3, i, 32, 28);
    REQUIRE((crop.shift_y == other.shift_y && crop.shift_x == other.shift_x));
  }
  check_even(first, 2);
  check_even(pairs, 2);
  check_even(seeds, 2);
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

  float least_offset = 9, most_offset = -9, least_gain = 9, most_gain = 0;
  double offsets = 0, gains = 0, products = 0;
  draw_many("offset=0.5,gain=0.25", [&](const ImageAugment& a) {
    least_offset = std::min(least_offset, a.offset);
    most_offset = std::max(most_offset, a.offset);
    least_gain = std::min(least_gain, a.gain);
    most_gain = std::max(most_gain, a.gain);
    offsets += a.offset;
    gains += a.gain - 1.0F;
    products += a.offset * (a.gain - 1.0F);
  });
  CHECK((least_offset >= -0.5F && least_offset < -0.499F && most_offset <= 0.5F && most_offset > 0.499F));
  CHECK((least_gain >= 0.75F && least_gain < 0.7505F && most_gain <= 1.25F && most_gain > 1.2495F));
  CHECK(std::abs(offsets / kDraws) < 5 * 1 / std::sqrt(12.0 * kDraws));
  CHECK(std::abs(gains / kDraws) < 5 * 0.5 / std::sqrt(12.0 * kDraws));
  CHECK(std::abs(products / kDraws) < 5 * 0.5 / std::sqrt(144.0 * kDraws));  // they do not depend on each other
  const ImageAugment none = draw_augment(parse_augment("crop"), 7, 2, 5, 32, 28);
  CHECK((none.offset == 0.0F && none.gain == 1.0F && !none.changes_values()));
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

TEST_CASE("cutouts inside are whole squares, evenly at every place that has room for them") {
  std::map<int, int> tops, lefts;
  std::map<std::pair<int, int>, int> places;
  draw_many("cutout-inside=12", [&](const ImageAugment& a) {
    const kernels::PixelBox& box = a.cutout;
    REQUIRE((box.top >= 0 && box.left >= 0 && box.bottom <= 32 && box.right <= 28));
    REQUIRE((box.bottom - box.top == 12 && box.right - box.left == 12));
    ++tops[box.top];
    ++lefts[box.left];
    ++places[{box.top, box.left}];
  });
  check_even(tops, 21);
  check_even(lefts, 17);
  check_even(places, 21 * 17);
  std::map<int, int> highest;  // as wide as the image: one column, five rows
  draw_many("cutout-inside=28", [&](const ImageAugment& a) {
    REQUIRE((a.cutout.left == 0 && a.cutout.right == 28 && a.cutout.bottom - a.cutout.top == 28));
    ++highest[a.cutout.top];
  });
  check_even(highest, 5);
  CHECK(error_of([] { draw_augment(parse_augment("cutout-inside=29"), 1, 0, 0, 32, 28); }) ==
        "loader: cutout-inside=29 needs images as large as that, this one has 32 x 28; choose a smaller square");
}
