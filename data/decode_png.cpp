// PNG by libpng's simplified interface, which reports errors by its return values: no jump passes our objects.
#include "tandem/core/error.h"
#include "tandem/data/decode_image.h"

#include <png.h>

namespace tandem::data::detail {

namespace {

/// Frees what libpng keeps for an image, however reading ends.
struct PngReader {
  png_image image{};

  PngReader() { image.version = PNG_IMAGE_VERSION; }
  ~PngReader() { png_image_free(&image); }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;
};

}  // namespace

RgbImage decode_png(std::span<const std::uint8_t> bytes, const std::string& path, std::int64_t max_pixels) {
  PngReader reader;
  png_image& image = reader.image;
  require(png_image_begin_read_from_memory(&image, bytes.data(), bytes.size()) != 0, "{}: not a sound PNG file: {}; {}",
          path, image.message, kImageAdvice);
  check_pixels(path, image.height, image.width, max_pixels);
  const bool has_alpha = (image.format & PNG_FORMAT_FLAG_ALPHA) != 0;
  image.flags |= PNG_IMAGE_FLAG_16BIT_sRGB;  // 16 bits are no other scale than 8, unless the file says so
  image.format = has_alpha ? PNG_FORMAT_RGBA : PNG_FORMAT_RGB;
  RgbImage result{image.height, image.width, std::vector<std::uint8_t>(PNG_IMAGE_SIZE(image))};
  require(png_image_finish_read(&image, nullptr, result.pixels.data(), 0, nullptr) != 0,
          "{}: not a sound PNG file: {}; {}", path, image.message, kImageAdvice);
  if (!has_alpha) return result;
  const auto pixels = static_cast<std::size_t>(result.height * result.width);
  for (std::size_t i = 0; i < pixels; ++i)
    for (std::size_t c = 0; c < 3; ++c) result.pixels[3 * i + c] = result.pixels[4 * i + c];
  result.pixels.resize(3 * pixels);
  return result;
}

}  // namespace tandem::data::detail
