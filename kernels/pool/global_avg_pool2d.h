// Mean over all pixels of an image.
#pragma once

#include "core/tensor.h"

namespace tandem::kernels {

/// y[n,c,0,0] = mean of x[n,c,:,:], summed in double by the reference. x: N,C,H,W with H*W >= 1, y: N,C,1,1, one
/// floating dtype, any strides.
void global_avg_pool2d_forward(const Tensor& x, const Tensor& y);

/// grad_x[n,c,h,w] = grad_y[n,c,0,0] / (H*W); overwrites grad_x.
void global_avg_pool2d_backward(const Tensor& grad_y, const Tensor& grad_x);

namespace reference {
void global_avg_pool2d_forward(const Tensor& x, const Tensor& y);
void global_avg_pool2d_backward(const Tensor& grad_y, const Tensor& grad_x);
}  // namespace reference

/// f32, f16 and bf16, summed up in float by parts, and these in double; all tensors dense in channels_last.
namespace cpu {
bool supports_global_avg_pool2d(const Tensor& x, const Tensor& y);
void global_avg_pool2d_forward(const Tensor& x, const Tensor& y);
void global_avg_pool2d_backward(const Tensor& grad_y, const Tensor& grad_x);
}  // namespace cpu

/// f32, f16 and bf16; accumulated in f32. Tensors that are not dense in channels_last are copied first.
namespace cuda {
void global_avg_pool2d_forward(const Tensor& x, const Tensor& y);
void global_avg_pool2d_backward(const Tensor& grad_y, const Tensor& grad_x);
}  // namespace cuda

}  // namespace tandem::kernels
