// Differentiable transposed two-dimensional convolution.
#pragma once

#include "tandem/core/height_width.h"
#include "tandem/core/tensor.h"
#include "tandem/kernels/conv/conv.h"

namespace tandem::autograd {

/// As Conv2dOptions has them, for the convolution that this is the transpose of. output_padding: rows and columns more
/// at the end of y, less than the stride or the dilation, whichever is more. While less than the stride, a convolution
/// with that stride has the same output with and without them; for more, rows of zeros are put behind x first.
struct ConvTranspose2dOptions {
  HeightWidth stride = 1;                                 ///< of the transposed convolution: the output grows by it
  HeightWidth padding = 0;                                ///< taken off the output on each side
  HeightWidth output_padding = 0;                         ///< rows and columns more at the output's end
  HeightWidth dilation = 1;                               ///< distance between the kernel's elements
  std::int64_t groups = 1;                                ///< into which the channels are divided
  kernels::ConvImpl impl = kernels::ConvImpl::automatic;  ///< which code computes it
};

/// y [N, K, P, Q], as torch.nn.functional.conv_transpose2d: x [N, C, H, W] is scattered, where conv2d() with the same
/// options would gather, so that y is what conv2d's gradient of its images would be. weight: [C, K/groups, R, S], bias
/// [K] or undefined, one floating dtype, any strides; P = (H-1) stride - 2 padding + dilation (R-1) + output_padding +
/// 1, and Q alike. y is channels_last. Half and f32 operands mix as in conv2d(). The kernels are conv2d's: y is
/// computed by those of its images' gradient, the gradient of x by those of its forward pass; then bias is added to y,
/// in a half dtype with one more rounding. Throws Error where the shapes or options make no transposed convolution.
/// Example:
///     const Tensor x = Tensor::zeros({8, 64, 16, 16}, {.layout = Layout::channels_last});
///     const Tensor weight = Tensor::zeros({64, 32, 4, 4}, {.layout = Layout::channels_last});
///     const Tensor y = conv_transpose2d(x, weight, {}, {.stride = 2, .padding = 1});  // [8, 32, 32, 32]
Tensor conv_transpose2d(const Tensor& x, const Tensor& weight, const Tensor& bias,
                        const ConvTranspose2dOptions& options = {});

/// The shape of that y. Throws Error where there is none.
Shape conv_transpose2d_output_shape(const Shape& x, const Shape& weight, const ConvTranspose2dOptions& options);

}  // namespace tandem::autograd
