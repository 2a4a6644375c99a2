// Image files to tensors.
#include "tandem/data/read_image.h"

#include "tandem/core/out.h"
#include "tandem/data/byte_reader.h"
#include "tandem/data/decode_image.h"

#include <algorithm>
#include <array>

namespace tandem::data {

namespace detail {

void check_pixels(const std::string& path, std::int64_t height, std::int64_t width, std::int64_t max_pixels) {
  require(height >= 1 && width >= 1, "{}: has no pixels: {} x {}; {}", path, height, width, kImageAdvice);
  require(height <= max_pixels / width, "{}: {} x {} pixels are more than max_pixels, {}; {}, or raise that limit",
          path, height, width, max_pixels, kImageAdvice);
}

}  // namespace detail

namespace {

constexpr std::int64_t kMostBytes = std::int64_t{1} << 30;

std::vector<std::uint8_t> read_file(const std::filesystem::path& path) {
  std::error_code error;
  require(std::filesystem::exists(path, error), "{}: no such file; check the path", path_text(path));
  const auto reader = open_bytes(path, std::string(detail::kImageAdvice));
  const auto size = std::filesystem::file_size(path, error);
  require(!error && size <= static_cast<std::uintmax_t>(kMostBytes), "{}: {} bytes are too many for an image; {}",
          path_text(path), size, detail::kImageAdvice);
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(size));
  reader->read(bytes, "an image");
  return bytes;
}

detail::RgbImage decode(const std::vector<std::uint8_t>& bytes, const std::string& path, std::int64_t max_pixels) {
  constexpr std::array<std::uint8_t, 8> kPng{0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
  constexpr std::array<std::uint8_t, 3> kJpeg{0xff, 0xd8, 0xff};
  const auto begins_with = [&](const auto& magic) {
    return bytes.size() >= magic.size() && std::equal(magic.begin(), magic.end(), bytes.begin());
  };
  if (begins_with(kPng)) return detail::decode_png(bytes, path, max_pixels);
  if (begins_with(kJpeg)) return detail::decode_jpeg(bytes, path, max_pixels);
  fail("{}: is neither a PNG nor a JPEG file by its first bytes; {}", path, detail::kImageAdvice);
}

}  // namespace

Tensor read_image(const std::filesystem::path& path, const ReadImageOptions& options) {
  require(options.channels == 3 || options.channels == 1, "read_image: {} channels asked for, expected 3 or 1",
          options.channels);
  const detail::RgbImage image = decode(read_file(path), path_text(path), options.max_pixels);
  const MemoryTagScope tag(MemoryTag::data);
  const Tensor result = Tensor::empty({options.channels, image.height, image.width}, {.dtype = DType::u8});
  auto* const planes = Out(result).data<std::uint8_t>();
  const std::int64_t pixels = image.height * image.width;
  const std::uint8_t* pixel = image.pixels.data();
  for (std::int64_t i = 0; i < pixels; ++i, pixel += 3) {
    if (options.channels == 1) {
      planes[i] = static_cast<std::uint8_t>((299 * pixel[0] + 587 * pixel[1] + 114 * pixel[2] + 500) / 1000);
    } else {
      for (std::int64_t c = 0; c < 3; ++c) planes[c * pixels + i] = pixel[c];
    }
  }
  return result;
}

}  // namespace tandem::data
