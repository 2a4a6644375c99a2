// Drawing shares and partners, and mixing.
#include "tandem/data/mixing.h"

#include "tandem/core/describe.h"
#include "tandem/core/out.h"
#include "tandem/core/random.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tandem::data {

namespace {

/// The random numbers of one image in one epoch, one after the other.
class Draws {
 public:
  Draws(std::uint64_t seed, std::uint32_t epoch, std::int64_t index)
      : key_{seed, RandomStream::mixing, epoch}, next_(static_cast<std::uint64_t>(index) * kNumbersOfOne) {}

  std::uint32_t below(std::uint32_t bound) { return key_.below(next_++, bound); }
  /// In (0, 1).
  double uniform() { return static_cast<double>(key_.uniform(next_++)) + 0x1p-25; }
  double normal() { return static_cast<double>(key_.normal(next_++)); }

 private:
  static constexpr std::uint64_t kNumbersOfOne = std::uint64_t{1} << 20;

  RandomKey key_;
  std::uint64_t next_;
};

/// The logarithm of a number that is Gamma(shape, 1) distributed (Marsaglia and Tsang, ACM TOMS 26, 2000): small shapes
/// make numbers that no double holds.
double log_gamma_number(double shape, Draws& draws) {
  if (shape < 1.0) {
    const double larger = log_gamma_number(shape + 1.0, draws);
    return larger + std::log(draws.uniform()) / shape;
  }
  const double d = shape - 1.0 / 3.0, c = 1.0 / std::sqrt(9.0 * d);
  while (true) {
    const double x = draws.normal(), root = 1.0 + c * x;
    if (root <= 0.0) continue;
    const double v = root * root * root;
    if (std::log(draws.uniform()) < 0.5 * x * x + d - d * v + d * std::log(v)) return std::log(d * v);
  }
}

/// A number that is Beta(a, a) distributed.
double beta_number(double a, Draws& draws) {
  const double first = log_gamma_number(a, draws), second = log_gamma_number(a, draws);
  return 1.0 / (1.0 + std::exp(second - first));
}

/// Where the partner shows that should have (1 - share) of the area: around a pixel anywhere, cut off at the border.
kernels::PixelBox draw_box(double share, std::int64_t height, std::int64_t width, Draws& draws) {
  const double side = std::sqrt(1.0 - share);
  const auto cut = [&](std::int64_t size) {
    const auto length = static_cast<std::int64_t>(side * static_cast<double>(size));
    const std::int64_t centre = draws.below(static_cast<std::uint32_t>(size));
    const std::int64_t begin = centre - length / 2;
    return std::pair(static_cast<int>(std::max<std::int64_t>(begin, 0)),
                     static_cast<int>(std::min(begin + length, size)));
  };
  const auto [top, bottom] = cut(height);
  const auto [left, right] = cut(width);
  return {top, left, bottom, right};
}

/// images[i] mixed with partners[i], in place. f32, channels_last dense.
void mix_images(const Out& images, const Tensor& partners, std::span<const ImageMix> mixes) {
  const std::int64_t channels = partners.size(1), width = partners.size(3);
  const std::int64_t row = width * channels, image = partners.size(2) * row;
  float* own = images.data<float>();
  const float* other = partners.data<float>();
  for (const ImageMix& mix : mixes) {
    if (mix.box.empty()) {
      for (std::int64_t i = 0; i < image; ++i) own[i] = mix.share * own[i] + (1.0f - mix.share) * other[i];
    } else {
      for (std::int64_t y = mix.box.top; y < mix.box.bottom; ++y)
        std::copy(other + y * row + mix.box.left * channels, other + y * row + mix.box.right * channels,
                  own + y * row + mix.box.left * channels);
    }
    own += image;
    other += image;
  }
}

Tensor mix_labels(const Tensor& labels, const Tensor& partner_labels, std::span<const ImageMix> mixes,
                  const MixOptions& options, bool pinned) {
  const Tensor probabilities = Tensor::zeros({labels.numel(), options.classes}, {.pinned = pinned});
  float* row = Out(probabilities).data<float>();
  for (std::size_t i = 0; i < mixes.size(); ++i, row += options.classes) {
    for (const auto& [label, share] : {std::pair(labels.data<std::int64_t>()[i], mixes[i].share),
                                       std::pair(partner_labels.data<std::int64_t>()[i], 1.0f - mixes[i].share)}) {
      require(label >= 0 && label < options.classes,
              "mixing: a label is {}, outside of the {} classes (MixOptions::classes)", label, options.classes);
      row[label] += share;
    }
  }
  return probabilities;
}

}  // namespace

void check(const MixOptions& options) {
  for (const double parameter : {options.mixup, options.cutmix}) {
    require(std::isfinite(parameter) && parameter >= 0.0,
            "mixing: parameters of mixup and cutmix must be finite numbers and not negative, got {}", parameter);
  }
  require(!options.any() || options.classes >= 1, "mixing: needs the number of classes (MixOptions::classes), got {}",
          options.classes);
}

ImageMix draw_mix(const MixOptions& options, std::uint64_t seed, std::uint32_t epoch, std::int64_t index,
                  std::int64_t count, std::int64_t height, std::int64_t width) {
  require(count >= 1 && count <= std::numeric_limits<std::uint32_t>::max(), "mixing: cannot choose of {} images",
          count);
  ImageMix mix;
  if (!options.any()) return mix;
  Draws draws(seed, epoch, index);
  mix.partner = draws.below(static_cast<std::uint32_t>(count));
  const bool chance = draws.uniform() < 0.5;
  const bool cuts = options.mixup == 0.0 || (options.cutmix > 0.0 && chance);
  const double share = beta_number(cuts ? options.cutmix : options.mixup, draws);
  mix.share = static_cast<float>(share);
  if (!cuts) return mix;
  mix.box = draw_box(share, height, width, draws);
  const std::int64_t area =
      mix.box.empty() ? 0 : std::int64_t{mix.box.bottom - mix.box.top} * (mix.box.right - mix.box.left);
  mix.share = static_cast<float>(1.0 - static_cast<double>(area) / static_cast<double>(height * width));
  if (mix.box.empty()) mix.box = {};
  return mix;
}

std::vector<Tensor> mixed_batch(const BatchSource& source, std::span<const std::int64_t> indices, std::uint32_t epoch,
                                const BatchOptions& batch, const MixOptions& options) {
  check(options);
  BatchOptions of_floats = batch;
  of_floats.dtype = DType::f32;
  const std::vector<Tensor> own = source.get_batch(indices, epoch, of_floats);
  require(own.size() == 2 && own[0].rank() == 4 && own[0].dtype() == DType::f32 && own[1].dtype() == DType::i64 &&
              own[1].shape() == Shape({own[0].size(0)}) && own[0].is_dense(Layout::channels_last),
          "mixing: needs images f32 [n,C,H,W] and labels i64 [n], and this data set has {}",
          own.size() == 2 ? fmt::format("{} and {}", describe(own[0]), describe(own[1]))
                          : fmt::format("{} tensors", own.size()));
  const std::int64_t height = own[0].size(2), width = own[0].size(3);
  std::vector<ImageMix> mixes;
  std::vector<std::int64_t> partners;
  for (const std::int64_t index : indices) {
    mixes.push_back(draw_mix(options, batch.seed, epoch, index, source.size(), height, width));
    partners.push_back(mixes.back().partner);
  }
  of_floats.pinned = false;
  const std::vector<Tensor> others = source.get_batch(partners, epoch, of_floats);
  mix_images(Out(own[0]), others[0], mixes);
  return {own[0], mix_labels(own[1], others[1], mixes, options, batch.pinned)};
}

}  // namespace tandem::data
