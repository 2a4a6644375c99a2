// Differentiable copies.
// Example:
//     const Tensor x = Tensor::zeros({8, 3, 32, 32});
//     const Tensor images = contiguous(x, Layout::channels_last);
//     const bool copied = !images.is_same(x);                    // true
//     const bool stayed = to(images, Device{}).is_same(images);  // true
#pragma once

#include "tandem/core/tensor.h"

namespace tandem::autograd {

/// x itself if it is dense in `layout` already, else a dense copy.
Tensor contiguous(const Tensor& x, Layout layout = Layout::row_major);

/// A copy, in the strides of x where they are dense.
Tensor clone(const Tensor& x);

/// x itself if it is on `device` already, else a copy there, in the strides of x where they are dense. Gradients are
/// brought back.
Tensor to(const Tensor& x, Device device);

}  // namespace tandem::autograd
