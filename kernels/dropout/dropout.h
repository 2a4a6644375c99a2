// Dropout: zeroes elements at random and scales up the rest (Srivastava et al., 2014).
#pragma once

#include "core/random.h"
#include "core/tensor.h"

namespace tandem::kernels {

/// y = x / (1 - p) where the element is kept, 0 where it is dropped, with probability p in [0, 1].
/// Whether an element is kept is a function of the key and of its index alone, not of how x is stored: images are
/// counted in the order N, H, W, C (their usual place in memory), all other ranks row by row. It is dropped if
/// key.bits(index) >> 8 < p * 2^24.
/// x, y: one shape, one floating dtype, one device, any strides; y may be x. Throws Error where that does not hold.
void dropout_forward(const Tensor& x, double p, const RandomKey& key, const Tensor& y);

/// grad_x from grad_y: the mask is drawn again from the key of the forward pass.
void dropout_backward(const Tensor& grad_y, double p, const RandomKey& key, const Tensor& grad_x);

namespace reference {
void dropout_forward(const Tensor& x, double p, const RandomKey& key, const Tensor& y);
}  // namespace reference

/// f32, f16 and bf16, dense in channels_last (images) or row-major.
namespace cpu {
bool supports_dropout(const Tensor& x, const Tensor& y);
void dropout_forward(const Tensor& x, double p, const RandomKey& key, const Tensor& y);
}  // namespace cpu

namespace cuda {
/// f32, f16 and bf16 on a CUDA device, any strides: the mask of the other implementations, bit for bit.
void dropout_forward(const Tensor& x, double p, const RandomKey& key, const Tensor& y);
}  // namespace cuda

namespace detail {
/// Words whose upper 24 bits are below this are dropped.
std::uint32_t dropout_threshold(double p);
}  // namespace detail

}  // namespace tandem::kernels
