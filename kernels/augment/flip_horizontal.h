// Mirroring of images, left to right.
#pragma once

#include "tandem/core/out.h"

namespace tandem::kernels {

/// out[n, c, h, w] = x[n, c, h, W - 1 - w]. N,C,H,W, any strides, one shape, floating dtype and device. Its own
/// inverse, and so its own gradient. Throws Error where that does not hold.
void flip_horizontal(const Tensor& x, const Out& out);

}  // namespace tandem::kernels
