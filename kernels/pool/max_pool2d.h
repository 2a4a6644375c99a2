// Maximum over windows of an image.
#pragma once

#include "kernels/pool/pool2d_options.h"

namespace tandem::kernels {

/// dtype of the indices that go with these options: u8 where the window has at most 256 positions, else i32.
DType max_pool2d_index_dtype(const Pool2dOptions& options);

/// y[n,c,i,j] = max of x over the window; padding never wins, NaN always does, the first of equals is taken.
/// x, y: N,C,H,W of one floating dtype, any strides. indices: shape of y, max_pool2d_index_dtype(options): the winner's
/// position within its window, row by row (row * kernel width + column); undefined: not written.
void max_pool2d_forward(const Tensor& x, const Pool2dOptions& options, const Tensor& y, const Tensor& indices);

/// grad_x gets each grad_y at the place of its winner, zero elsewhere; overwrites grad_x. sums: [C] of the same dtype,
/// gets the sum of grad_x over images and pixels, the gradient of a bias before the pooling; undefined: not written.
void max_pool2d_backward(const Tensor& grad_y, const Tensor& indices, const Pool2dOptions& options,
                         const Tensor& grad_x, const Tensor& sums = {});

namespace reference {
void max_pool2d_forward(const Tensor& x, const Pool2dOptions& options, const Tensor& y, const Tensor& indices);
void max_pool2d_backward(const Tensor& grad_y, const Tensor& indices, const Pool2dOptions& options,
                         const Tensor& grad_x);
}  // namespace reference

/// f32, f16 and bf16, computed in float; all tensors dense in channels_last, u8 indices.
namespace cpu {
bool supports_max_pool2d(const Tensor& x, const Tensor& y, const Tensor& indices);
void max_pool2d_forward(const Tensor& x, const Pool2dOptions& options, const Tensor& y, const Tensor& indices);
void max_pool2d_backward(const Tensor& grad_y, const Tensor& indices, const Pool2dOptions& options,
                         const Tensor& grad_x);
}  // namespace cpu

/// f32, f16 and bf16; accumulated in f32, sums in an order that depends on the sizes alone. Tensors that are not dense
/// in channels_last are copied first.
namespace cuda {
void max_pool2d_forward(const Tensor& x, const Pool2dOptions& options, const Tensor& y, const Tensor& indices);
void max_pool2d_backward(const Tensor& grad_y, const Tensor& indices, const Pool2dOptions& options,
                         const Tensor& grad_x, const Tensor& sums);
}  // namespace cuda

}  // namespace tandem::kernels
