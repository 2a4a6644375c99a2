// Drawing what an image gets.
#include "tandem/data/augment.h"

#include "tandem/core/random.h"

#include <algorithm>
#include <array>

namespace tandem::data {

namespace {

/// Each draw has its own place among the words of an image, so that one kind's numbers do not change with the others.
enum Word : std::uint64_t {
  kShiftY,
  kShiftX,
  kFlip,
  kAngle,
  kBrightness,
  kContrast,
  kSaturation,
  kOrder,
  kCutY,
  kCutX,
  kOffset,
  kGain,
  kWords
};
constexpr std::uint64_t kBlocksPerImage = 4;
constexpr std::size_t kWordsPerImage = 4 * kBlocksPerImage;

class ImageWords {
 public:
  ImageWords(const RandomKey& key, std::int64_t index) {
    for (std::uint64_t block = 0; block <= (kWords - 1) / 4; ++block) {
      const auto four = key.block(static_cast<std::uint64_t>(index) * kBlocksPerImage + block);
      std::copy(four.begin(), four.end(), words_.begin() + static_cast<std::ptrdiff_t>(4 * block));
    }
  }

  int between(Word word, int low, int high) const {
    const auto range = static_cast<std::uint64_t>(high - low) + 1;
    return low + static_cast<int>((words_[word] * range) >> 32);
  }
  float uniform(Word word, float low, float high) const {
    return low + (high - low) * RandomKey::to_uniform(static_cast<std::uint32_t>(words_[word]));
  }

 private:
  std::array<std::uint64_t, kWordsPerImage> words_{};
};

constexpr std::array<std::array<std::uint8_t, 3>, 6> kOrders{
    {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}}};

}  // namespace

void check_size(const AugmentOptions& options, std::int64_t height, std::int64_t width, std::string_view whose) {
  const std::int64_t smaller = std::min(height, width);
  require(!options.crop || options.crop_border == kernels::BorderMode::zero || *options.crop < smaller,
          "loader: crop-reflect={} needs images larger than that, {} {} x {}; choose a smaller border",
          options.crop.value_or(0), whose, height, width);
  require(!options.cutout || !options.cutout_inside || *options.cutout <= smaller,
          "loader: cutout-inside={} needs images as large as that, {} {} x {}; choose a smaller square",
          options.cutout.value_or(0), whose, height, width);
}

kernels::ImageAugment draw_augment(const AugmentOptions& options, std::uint64_t seed, std::uint32_t epoch,
                                   std::int64_t index, std::int64_t height, std::int64_t width) {
  const ImageWords words({seed, RandomStream::augmentation, epoch}, index);
  kernels::ImageAugment result;
  if (options.crop) {
    result.shift_y = words.between(kShiftY, -*options.crop, *options.crop);
    result.shift_x = words.between(kShiftX, -*options.crop, *options.crop);
  }
  if (options.flip) {
    const bool alternates = options.flip_alternates && epoch > 0;
    const ImageWords first = alternates ? ImageWords({seed, RandomStream::augmentation, 0}, index) : words;
    result.flip = (first.between(kFlip, 0, 1) == 1) != (alternates && epoch % 2 == 1);
  }
  if (options.rotation) result.degrees = words.uniform(kAngle, -*options.rotation, *options.rotation);
  if (options.jitter) {
    const float low = std::max(0.0F, 1.0F - *options.jitter), high = 1.0F + *options.jitter;
    result.brightness = words.uniform(kBrightness, low, high);
    result.contrast = words.uniform(kContrast, low, high);
    result.saturation = words.uniform(kSaturation, low, high);
    result.color_order = kOrders[static_cast<std::size_t>(words.between(kOrder, 0, 5))];
  }
  if (options.offset) result.offset = words.uniform(kOffset, -*options.offset, *options.offset);
  if (options.gain) result.gain = words.uniform(kGain, 1.0F - *options.gain, 1.0F + *options.gain);
  if (options.cutout && options.cutout_inside) {
    const int size = *options.cutout;
    check_size(options, height, width, "this one has");
    const int top = words.between(kCutY, 0, static_cast<int>(height) - size);
    const int left = words.between(kCutX, 0, static_cast<int>(width) - size);
    result.cutout = {top, left, top + size, left + size};
  } else if (options.cutout) {
    const int size = *options.cutout;
    const int top = words.between(kCutY, 0, static_cast<int>(height) - 1) - size / 2;
    const int left = words.between(kCutX, 0, static_cast<int>(width) - 1) - size / 2;
    result.cutout = {std::max(top, 0), std::max(left, 0), std::min(top + size, static_cast<int>(height)),
                     std::min(left + size, static_cast<int>(width))};
  }
  return result;
}

std::vector<kernels::ImageAugment> draw_augments(const AugmentOptions& options, std::uint64_t seed, std::uint32_t epoch,
                                                 std::span<const std::int64_t> indices, std::int64_t height,
                                                 std::int64_t width) {
  std::vector<kernels::ImageAugment> augments;
  if (!options.any()) return augments;
  for (const std::int64_t index : indices) augments.push_back(draw_augment(options, seed, epoch, index, height, width));
  return augments;
}

}  // namespace tandem::data
