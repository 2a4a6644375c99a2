// Mean over all pixels of an image.
#pragma once

#include "tandem/core/out.h"

namespace tandem::kernels {

/// y[n,c,0,0] = mean of x[n,c,:,:], summed in double by the reference. x: N,C,H,W with H*W >= 1, y: N,C,1,1, one
/// floating dtype, any strides.
void global_avg_pool2d_forward(const Tensor& x, const Out& y);

/// grad_x[n,c,h,w] = grad_y[n,c,0,0] / (H*W); overwrites grad_x.
void global_avg_pool2d_backward(const Tensor& grad_y, const Out& grad_x);

}  // namespace tandem::kernels
