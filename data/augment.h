// Random augmentation: which kinds are wanted, and what one image gets in one epoch.
#pragma once

#include "tandem/kernels/augment/augment_images.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::data {

/// Absent kinds are not done. They are done in this order, then the image is normalised, then cut out.
struct AugmentOptions {
  std::optional<int> crop = {};  ///< RandomCrop: padded by so many pixels on each side, then cut to its size anywhere
  kernels::BorderMode crop_border = kernels::BorderMode::zero;  ///< what stands beyond the edges
  bool flip = false;                                            ///< RandomHorizontalFlip: with probability 1/2
  /// With `flip`: drawn in epoch 0 only; each later epoch mirrors every image against the epoch before, so that two
  /// epochs in a row show it both ways (Jordan, arXiv 2404.00498).
  bool flip_alternates = false;
  std::optional<float> rotation = {};  ///< RandomRotation: by up to so many degrees either way, bilinear, black outside
  /// ColorJitter: factors of brightness, contrast and saturation, each uniform in [max(0, 1 - x), 1 + x], applied in
  /// random order (PyTorch's definition).
  std::optional<float> jitter = {};
  /// The normalised values v of an image become (v + b) g: b uniform in [-offset, offset], g in [1 - gain, 1 + gain],
  /// the same for all its channels, without a clamp.
  std::optional<float> offset = {}, gain = {};
  std::optional<int> cutout = {};  ///< Cutout: a square of this side around a random pixel, clipped at the border, to 0
  bool cutout_inside = false;      ///< the square of `cutout` lies anywhere within the image instead, always whole

  /// Whether anything is done.
  bool any() const { return crop || flip || rotation || jitter || offset || gain || cutout; }
};

/// Reads "crop,flip,jitter,rotate,offset,gain,cutout": any of these in any order, each at most once, or "" or "none".
/// Those with a size take one after '=': crop=4 (pixels), crop-reflect=4, jitter=0.2 (factor), rotate=15 (degrees),
/// offset=0.14, gain=0.13, cutout=8 (pixels), cutout-inside=8; these are the defaults. flip-alternating takes the place
/// of flip. Throws Error on anything else, naming the nearest.
/// Example:
///     const AugmentOptions options = parse_augment("flip,crop");
///     const std::string text = to_string(options);  // "crop=4,flip"
AugmentOptions parse_augment(std::string_view text);

/// The text that parse_augment() reads as `options`; "none" for none.
std::string to_string(const AugmentOptions& options);

/// Throws Error where images of this size are too small for a reflecting crop or a cutout inside. `whose` says whose
/// they are, as in "the folder's are".
void check_size(const AugmentOptions& options, std::int64_t height, std::int64_t width, std::string_view whose);

/// What image `index` of a data set gets in `epoch`: a function of these arguments alone, so that results depend
/// neither on threads nor on ranks nor on batches. Throws Error where cutout_inside is larger than the image.
kernels::ImageAugment draw_augment(const AugmentOptions& options, std::uint64_t seed, std::uint32_t epoch,
                                   std::int64_t index, std::int64_t height, std::int64_t width);

/// The same of each of `indices`; nothing where `options` has no kind.
std::vector<kernels::ImageAugment> draw_augments(const AugmentOptions& options, std::uint64_t seed, std::uint32_t epoch,
                                                 std::span<const std::int64_t> indices, std::int64_t height,
                                                 std::int64_t width);

}  // namespace tandem::data
