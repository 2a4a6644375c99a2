// Training images that are made of two: mixup and CutMix.
#pragma once

#include "tandem/data/batch_source.h"

#include <cstdint>
#include <span>
#include <vector>

namespace tandem::data {

/// Which ways to mix an image with a partner, another image of the data set; with both, each image takes one of them by
/// chance. A parameter a is that of the distribution Beta(a, a) that an image's share s is drawn from: small ones leave
/// most images nearly alone, with 1 all shares are equally likely.
struct MixOptions {
  double mixup = 0.0;        ///< s x + (1 - s) partner (Zhang, Cisse, Dauphin, Lopez-Paz, ICLR 2018); 0: not
  double cutmix = 0.0;       ///< a box of the partner in x, s being what is left of x (Yun et al., ICCV 2019); 0: not
  std::int64_t classes = 0;  ///< of the data set

  /// Whether images are mixed.
  bool any() const { return mixup > 0.0 || cutmix > 0.0; }
};

/// What one image gets in one epoch.
struct ImageMix {
  std::int64_t partner = 0;    ///< number of the other image
  float share = 1.0f;          ///< of the image itself, in its label too; the partner has the rest
  kernels::PixelBox box = {};  ///< of CutMix: where the partner shows; empty: mixup
};

/// A function of these arguments alone, so that results depend neither on threads nor on ranks nor on batches. `count`
/// is the size of the data set, from 1 to 2^32 - 1.
ImageMix draw_mix(const MixOptions& options, std::uint64_t seed, std::uint32_t epoch, std::int64_t index,
                  std::int64_t count, std::int64_t height, std::int64_t width);

/// The batch that `source` makes of `indices` by `batch`, each image with its partner in it, which is augmented as it
/// is on its own: {images f32 [n,C,H,W], class probabilities f32 [n, classes]}. Reads 2 n images. Throws Error unless
/// the source makes images and labels i64 [n] in [0, classes).
/// Example:
///     #include "tandem/data/synthetic.h"
///     const ImageDataset images = make_synthetic({.count = 100});
///     const std::vector<std::int64_t> indices = {3, 1};
///     const auto batch = mixed_batch(images, indices, 0, {}, {.mixup = 1.0, .classes = images.classes()});
///     const Tensor probabilities = batch[1];  // [2, 10]; each row has sum 1
std::vector<Tensor> mixed_batch(const BatchSource& source, std::span<const std::int64_t> indices, std::uint32_t epoch,
                                const BatchOptions& batch, const MixOptions& options);

/// Throws Error for parameters that make no sense.
void check(const MixOptions& options);

}  // namespace tandem::data
