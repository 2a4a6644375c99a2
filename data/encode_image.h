// Encoding images as PNG.
#pragma once

#include "tandem/core/tensor.h"

#include <string>

namespace tandem::data {

/// The bytes of a PNG file of an image u8 [C,H,W] with 1 channel (grey) or 3 (red, green, blue), on any device. Throws
/// Error for any other tensor, and where this build lacks libpng.
std::string encode_png(const Tensor& image);

}  // namespace tandem::data
