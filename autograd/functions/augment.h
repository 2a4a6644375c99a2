// Differentiable padding, cropping and mirroring of images.
// Example:
//     const Tensor images = Tensor::zeros({8, 3, 32, 32});
//     const Tensor padded = pad2d(images, {.left = 4, .right = 4, .top = 4, .bottom = 4});  // [8, 3, 40, 40]
//     const Tensor y = flip_horizontal(crop2d(padded, 2, 5, 32, 32));                       // [8, 3, 32, 32]
#pragma once

#include "tandem/core/tensor.h"
#include "tandem/kernels/augment/pad2d.h"

namespace tandem::autograd {

using kernels::Pad2dOptions;
using kernels::PadMode;

/// Images N,C,H,W with zeros or their own reflection around them; see kernels::pad2d.
Tensor pad2d(const Tensor& x, const Pad2dOptions& options);

/// Rows [top, top + height) and columns [left, left + width) of images N,C,H,W, copied.
Tensor crop2d(const Tensor& x, std::int64_t top, std::int64_t left, std::int64_t height, std::int64_t width);

/// Images N,C,H,W mirrored left to right.
Tensor flip_horizontal(const Tensor& x);

}  // namespace tandem::autograd
