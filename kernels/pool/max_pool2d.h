// Maximum over windows of an image.
#pragma once

#include "tandem/core/out.h"
#include "tandem/kernels/pool/pool2d_options.h"

namespace tandem::kernels {

/// dtype of the indices that go with these options: u8 where the window has at most 256 positions, else i32.
DType max_pool2d_index_dtype(const Pool2dOptions& options);

/// y[n,c,i,j] = max of x over the window; padding never wins, NaN always does, the first of equals is taken.
/// x, y: N,C,H,W of one floating dtype, any strides. indices: shape of y, max_pool2d_index_dtype(options): the winner's
/// position within its window, row by row (row * kernel width + column); undefined: not written.
void max_pool2d_forward(const Tensor& x, const Pool2dOptions& options, const Out& y, const Out& indices);

/// grad_x gets each grad_y at the place of its winner, zero elsewhere; overwrites grad_x. On a GPU a window whose index
/// is none of its positions passes nothing on (kNoPosition of conv.h, 255, in windows of fewer pixels). sums: [C] of
/// the same dtype, gets the sum of grad_x over images and pixels, the gradient of a bias before the pooling; undefined:
/// not written.
void max_pool2d_backward(const Tensor& grad_y, const Tensor& indices, const Pool2dOptions& options, const Out& grad_x,
                         const Out& sums = {});

}  // namespace tandem::kernels
