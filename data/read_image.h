// Images from PNG and JPEG files.
// Example:
//     Tensor thumbnail(const std::string& file) {
//       return resize_image(read_image(file), {64, 64});  // u8 [3, 64, 64]
//     }
//     const Tensor square = resize_image(Tensor::zeros({3, 480, 640}, {.dtype = DType::u8}), {64, 64});  // [3, 64, 64]
#pragma once

#include "tandem/core/tensor.h"

#include <cstdint>
#include <filesystem>

namespace tandem::data {

/// What becomes of an image's pixels.
struct ReadImageOptions {
  int channels = 3;                       ///< 3: red, green, blue; 1: grey, 0.299 red + 0.587 green + 0.114 blue
  std::int64_t max_pixels = 100'000'000;  ///< more are an error, before they take memory
};

/// The image in a file, u8 [channels, height, width], row-major. What it holds is told by its first bytes, not by its
/// name: PNG (palettes, grey, 1 to 16 bits; transparency is left out, colours are as under it) or JPEG (baseline,
/// progressive, grey, CMYK; turned as it is stored, whatever its EXIF orientation). Throws Error that begins with the
/// path where the file is missing, no image, damaged or cut, or has too many pixels, and where this build lacks libpng
/// or libjpeg. Several threads may call it at once.
Tensor read_image(const std::filesystem::path& path, const ReadImageOptions& options = {});

/// Of an image.
struct ImageSize {
  std::int64_t height = 0, width = 0;  ///< in pixels

  friend bool operator==(const ImageSize&, const ImageSize&) = default;
};

/// How an image of another shape is brought to a size.
enum class ImageFit : std::uint8_t {
  crop,    ///< its middle part of the wanted shape: as large as possible
  stretch  ///< all of it
};

/// The image u8 [C,H,W] in another size, u8 and row-major: bilinear, and where it shrinks as the mean of all pixels
/// under a triangle of twice the new pixels' size, so that nothing is aliased (as Pillow and torchvision with
/// antialias). One of that size is returned as it is, with the same elements where it is row-major. Works in the
/// calling thread alone. Throws Error for other tensors and sizes below 1.
Tensor resize_image(const Tensor& image, ImageSize size, ImageFit fit = ImageFit::crop);

}  // namespace tandem::data
