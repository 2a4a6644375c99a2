// A learnable task without files: drawn shapes.
#pragma once

#include "tandem/data/image_dataset.h"

namespace tandem::data {

/// What the images are.
struct SyntheticOptions {
  std::int64_t count = 10000;  ///< of images
  std::int64_t channels = 3;   ///< of each image
  std::int64_t side = 32;      ///< height and width, in pixels
  std::uint64_t seed = 0;      ///< of the images
  Split split = Split::train;  ///< training and test images differ
};

/// Ten classes: disc, ring, square, frame, triangle, plus, cross, horizontal stripes, vertical stripes, checkerboard.
/// Each image shows one shape of random place, size, tilt and colours on a shaded background, under noise; figure and
/// ground change places at random, so that no pixel's mean tells the class and a linear classifier learns little. Image
/// i is of class i mod 10 and depends on (seed, split, i), channels and side only. Throws Error unless count is 1 to
/// 1,000,000, channels 1 to 4 and side 8 to 256. Example:
///     const ImageDataset shapes = make_synthetic({.count = 100, .channels = 1, .side = 16, .split = Split::test});
///     const Tensor images = shapes.images;  // [100, 1, 16, 16]
ImageDataset make_synthetic(const SyntheticOptions& options);

}  // namespace tandem::data
