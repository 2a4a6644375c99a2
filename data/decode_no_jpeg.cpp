// Without libjpeg.
#include "tandem/core/error.h"
#include "tandem/data/decode_image.h"

namespace tandem::data::detail {

RgbImage decode_jpeg(std::span<const std::uint8_t> /*bytes*/, const std::string& path, std::int64_t /*max_pixels*/) {
  fail("{}: is a JPEG file, and this build of Tandem has no libjpeg: install libjpeg-dev and build it again", path);
}

}  // namespace tandem::data::detail
