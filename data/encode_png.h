// Images as PNG files.
#pragma once

#include "tandem/core/tensor.h"

#include <cstdint>
#include <vector>

namespace tandem::data {

/// Whether this build has libpng.
bool can_encode_png();

/// The contents of a PNG file of an image u8 [C,H,W]: grey with one channel, red, green and blue with three. Throws
/// Error for other tensors, and where this build has no libpng. Example:
///     if (can_encode_png()) {
///       const Tensor black = Tensor::zeros({3, 32, 32}, {.dtype = DType::u8});
///       const std::vector<std::uint8_t> file = encode_png(black);  // begins with 0x89, 'P', 'N', 'G'
///     }
std::vector<std::uint8_t> encode_png(const Tensor& image);

}  // namespace tandem::data
