// Mirroring of images, left to right.
#pragma once

#include "core/tensor.h"

namespace tandem::kernels {

/// out[n, c, h, w] = x[n, c, h, W - 1 - w]. N,C,H,W, any strides, one shape, floating dtype and device. Its own
/// inverse, and so its own gradient. Throws Error where that does not hold.
void flip_horizontal(const Tensor& x, const Tensor& out);

namespace reference {
void flip_horizontal(const Tensor& x, const Tensor& out);
}

namespace cpu {
/// channels_last on the CPU, any floating dtype.
bool flip_horizontal_supports(const Tensor& x, const Tensor& out);
void flip_horizontal(const Tensor& x, const Tensor& out);
}  // namespace cpu

namespace cuda {
/// f32, f16 and bf16 on a CUDA device.
void flip_horizontal(const Tensor& x, const Tensor& out);
}  // namespace cuda

}  // namespace tandem::kernels
