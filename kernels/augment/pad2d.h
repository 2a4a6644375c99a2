// Padding of images.
#pragma once

#include "tandem/core/out.h"

namespace tandem::kernels {

enum class PadMode : std::uint8_t {
  zero,
  reflect,  // mirrored at the edge element, which is not repeated: c b | a b c | b a
};

/// Rows and columns added on each side, >= 0.
struct Pad2dOptions {
  std::int64_t left = 0, right = 0, top = 0, bottom = 0;
  PadMode mode = PadMode::zero;
};

/// Shape of the padded images; throws Error unless `x` is N,C,H,W and, for PadMode::reflect, padding < size.
Shape pad2d_output_shape(const Shape& x, const Pad2dOptions& options);

/// out = x with padding around it. N,C,H,W, any strides, one floating dtype and device. Throws Error where that does
/// not hold.
void pad2d(const Tensor& x, const Pad2dOptions& options, const Out& out);

/// grad_x = sum of the elements of `grad_out` that were copied from each element.
void pad2d_backward(const Tensor& grad_out, const Pad2dOptions& options, const Out& grad_x);

}  // namespace tandem::kernels
