// Decoding image files: which library does it is chosen by the file's first bytes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::data::detail {

/// Rows of red, green and blue bytes.
struct RgbImage {
  std::int64_t height = 0, width = 0;
  std::vector<std::uint8_t> pixels;
};

/// What messages about a file end with.
inline constexpr std::string_view kImageAdvice = "replace the file, or remove it";

/// Throws Error for an image of no pixel, or of more than `max_pixels`. Called before any memory is taken for them.
void check_pixels(const std::string& path, std::int64_t height, std::int64_t width, std::int64_t max_pixels);

/// The image in the contents of a PNG file: palettes and shades of grey as the colours that they mean, 16 bits rounded
/// to 8, alpha left out. Throws Error, which begins with `path`, where it is damaged, cut, or too large, and where this
/// build lacks libpng.
RgbImage decode_png(std::span<const std::uint8_t> bytes, const std::string& path, std::int64_t max_pixels);

/// The same of a JPEG file, baseline or progressive: grey, YCbCr, RGB, CMYK and YCCK (inverted, where Adobe's marker
/// says so, as its programs write them).
RgbImage decode_jpeg(std::span<const std::uint8_t> bytes, const std::string& path, std::int64_t max_pixels);

}  // namespace tandem::data::detail
