// Dropout: zeroes elements at random and scales up the rest (Srivastava et al., 2014).
#pragma once

#include "tandem/core/out.h"
#include "tandem/core/random.h"

namespace tandem::kernels {

/// y = x / (1 - p) where the element is kept, 0 where it is dropped, with probability p in [0, 1].
/// Whether an element is kept is a function of the key and of its index alone, not of how x is stored: images are
/// counted in the order N, H, W, C (their usual place in memory), all other ranks row by row. It is dropped if
/// key.bits(index) >> 8 < p * 2^24.
/// x, y: one shape, one floating dtype, one device, any strides; y may be x. `step`: i64, one number on that device,
/// which is added to key.step modulo 2^32 where it is defined; a GPU reads it as it comes to it, so that work that was
/// recorded once draws other numbers in each launch. Throws Error where that does not hold.
void dropout_forward(const Tensor& x, double p, const RandomKey& key, const Out& y, const Tensor& step = {});

/// grad_x from grad_y: the mask is drawn again from the key of the forward pass, and the step.
void dropout_backward(const Tensor& grad_y, double p, const RandomKey& key, const Out& grad_x, const Tensor& step = {});

}  // namespace tandem::kernels
