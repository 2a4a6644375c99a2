// Without libpng.
#include "tandem/core/error.h"
#include "tandem/data/decode_image.h"

namespace tandem::data::detail {

RgbImage decode_png(std::span<const std::uint8_t> /*bytes*/, const std::string& path, std::int64_t /*max_pixels*/) {
  fail("{}: is a PNG file, and this build of Tandem has no libpng: install libpng-dev and build it again", path);
}

}  // namespace tandem::data::detail
