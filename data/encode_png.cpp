// By libpng's simplified interface.
#include "tandem/data/encode_png.h"

#include "tandem/core/describe.h"

#include <png.h>

namespace tandem::data {

bool can_encode_png() { return true; }

std::vector<std::uint8_t> encode_png(const Tensor& image) {
  require(image.defined() && image.dtype() == DType::u8 && image.rank() == 3 &&
              (image.size(0) == 1 || image.size(0) == 3) && image.numel() > 0,
          "encode_png: needs an image u8 [1,H,W] or [3,H,W], got {}", describe(image));
  const std::vector<std::uint8_t> pixels = image.permute(std::vector<int>{1, 2, 0}).to_vector<std::uint8_t>();
  png_image png{};
  png.version = PNG_IMAGE_VERSION;
  png.height = static_cast<png_uint_32>(image.size(1));
  png.width = static_cast<png_uint_32>(image.size(2));
  png.format = image.size(0) == 3 ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY;
  png_alloc_size_t bytes = PNG_IMAGE_PNG_SIZE_MAX(png);
  std::vector<std::uint8_t> file(bytes);
  const bool written = png_image_write_to_memory(&png, file.data(), &bytes, 0, pixels.data(), 0, nullptr) != 0;
  require(written, "encode_png: {}", png.message);
  file.resize(bytes);
  return file;
}

}  // namespace tandem::data
