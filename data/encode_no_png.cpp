// Without libpng.
#include "tandem/core/error.h"
#include "tandem/data/encode_png.h"

namespace tandem::data {

bool can_encode_png() { return false; }

std::vector<std::uint8_t> encode_png(const Tensor& /*image*/) {
  fail("encode_png: this build of Tandem has no libpng: install libpng-dev and build it again");
}

}  // namespace tandem::data
