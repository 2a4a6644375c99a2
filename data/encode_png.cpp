// PNG by libpng's simplified interface, which reports errors by its return values: no jump passes our objects.
#include "tandem/core/describe.h"
#include "tandem/core/error.h"
#include "tandem/data/encode_image.h"

#include <png.h>

#include <array>
#include <cstdint>

namespace tandem::data {

std::string encode_png(const Tensor& image) {
  require(image.rank() == 3 && image.dtype() == DType::u8 && (image.size(0) == 1 || image.size(0) == 3) &&
              image.numel() > 0,
          "encode_png: needs an image u8 [C,H,W] with 1 or 3 channels, got {}", describe(image));
  const std::int64_t height = image.size(1), width = image.size(2);
  constexpr std::int64_t kLargest = 1 << 20;
  require(height <= kLargest && width <= kLargest, "encode_png: {} is larger than {} pixels", describe(image),
          kLargest);
  const std::array<int, 3> pixels_first{1, 2, 0};
  const auto values = image.permute(pixels_first).to_vector<std::uint8_t>();
  png_image png{};
  png.version = PNG_IMAGE_VERSION;
  png.height = static_cast<png_uint_32>(height);
  png.width = static_cast<png_uint_32>(width);
  png.format = image.size(0) == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  png_alloc_size_t bytes = PNG_IMAGE_PNG_SIZE_MAX(png);
  std::string file(bytes, '\0');
  require(png_image_write_to_memory(&png, file.data(), &bytes, 0, values.data(), 0, nullptr) != 0,
          "encode_png: libpng cannot encode {}: {}", describe(image), png.message);
  file.resize(bytes);
  return file;
}

}  // namespace tandem::data
