// Image files made for tests: PNG byte by byte, so that there may be anything in it, and JPEG by libjpeg.
#pragma once

#include "tests/data/files.h"

#include <cstdio>
#include <cstdlib>
#include <string_view>

#if TANDEM_HAS_JPEG
#include <jpeglib.h>
#endif

namespace tandem::test {

inline Bytes big_endian(std::uint32_t number) {
  return {std::uint8_t(number >> 24), std::uint8_t(number >> 16), std::uint8_t(number >> 8), std::uint8_t(number)};
}

inline Bytes png_chunk(std::string_view name, const Bytes& contents) {
  const Bytes checked = Bytes(name.begin(), name.end()) + contents;
  const auto crc = static_cast<std::uint32_t>(crc32(0, checked.data(), static_cast<uInt>(checked.size())));
  return big_endian(static_cast<std::uint32_t>(contents.size())) + checked + big_endian(crc);
}

/// What a PNG file says of itself; `rows` are packed as its colour type and depth say.
struct Png {
  std::uint32_t height = 0, width = 0;
  int depth = 8;
  int color = 2;  // 0 grey, 2 RGB, 3 palette, 4 grey and alpha, 6 RGBA
  std::vector<Bytes> rows = {};
  Bytes chunks = {};  // between IHDR and IDAT
};

inline Bytes png_file(const Png& png) {
  Bytes raw;
  for (const Bytes& row : png.rows) raw = raw + Bytes{0} + row;
  Bytes packed(compressBound(static_cast<uLong>(raw.size())));
  uLongf size = static_cast<uLongf>(packed.size());
  if (compress(packed.data(), &size, raw.data(), static_cast<uLong>(raw.size())) != Z_OK) throw std::bad_alloc();
  packed.resize(size);
  const Bytes header =
      big_endian(png.width) + big_endian(png.height) + Bytes{std::uint8_t(png.depth), std::uint8_t(png.color), 0, 0, 0};
  return Bytes{0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'} + png_chunk("IHDR", header) + png.chunks +
         png_chunk("IDAT", packed) + png_chunk("IEND", {});
}

/// A PNG file of one colour.
inline Bytes plain_png(std::uint32_t height, std::uint32_t width, const Bytes& rgb = {10, 20, 30}) {
  Bytes row;
  for (std::uint32_t x = 0; x < width; ++x) row = row + rgb;
  return png_file({.height = height, .width = width, .rows = std::vector<Bytes>(height, row)});
}

#if TANDEM_HAS_JPEG
struct Jpeg {
  unsigned height = 16, width = 16;
  J_COLOR_SPACE pixels = JCS_RGB;  // what `color` is
  J_COLOR_SPACE stored = JCS_YCbCr;
  Bytes color = {10, 20, 30};  // of each pixel
  bool progressive = false;
  bool adobe = false;
};

/// A JPEG file of one colour, at the best quality.
inline Bytes jpeg_file(const Jpeg& jpeg) {
  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* file = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &file, &size);
  info.image_height = jpeg.height;
  info.image_width = jpeg.width;
  info.input_components = static_cast<int>(jpeg.color.size());
  info.in_color_space = jpeg.pixels;
  jpeg_set_defaults(&info);
  jpeg_set_colorspace(&info, jpeg.stored);
  info.write_Adobe_marker = jpeg.adobe ? TRUE : FALSE;
  jpeg_set_quality(&info, 100, TRUE);
  if (jpeg.progressive) jpeg_simple_progression(&info);
  jpeg_start_compress(&info, TRUE);
  Bytes row;
  for (unsigned x = 0; x < jpeg.width; ++x) row = row + jpeg.color;
  for (unsigned y = 0; y < jpeg.height; ++y) {
    JSAMPROW rows = row.data();
    jpeg_write_scanlines(&info, &rows, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  const Bytes result(file, file + size);
  std::free(file);
  return result;
}
#endif

}  // namespace tandem::test
