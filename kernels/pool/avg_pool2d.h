// Mean over windows of an image.
#pragma once

#include "tandem/core/out.h"
#include "tandem/kernels/pool/pool2d_options.h"

namespace tandem::kernels {

/// y[n,c,i,j] = sum of x over the window / divisor. The divisor is the window's size clipped to the padded image, or
/// with count_include_pad = false, to the image itself. x, y: N,C,H,W of one floating dtype, any strides.
void avg_pool2d_forward(const Tensor& x, const Pool2dOptions& options, const Out& y);

/// Overwrites grad_x (shape of x) with the sum of grad_y / divisor over the windows that cover each pixel.
void avg_pool2d_backward(const Tensor& grad_y, const Pool2dOptions& options, const Out& grad_x);

/// 1 / divisor of the window of output row i and column j, for an image of height x width.
double avg_pool2d_weight(std::int64_t i, std::int64_t j, std::int64_t height, std::int64_t width,
                         const Pool2dOptions& options);

}  // namespace tandem::kernels
