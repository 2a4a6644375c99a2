// Differentiable two-dimensional convolution.
#pragma once

#include "tandem/core/tensor.h"
#include "tandem/kernels/conv/conv.h"

namespace tandem::autograd {

using kernels::Conv2dOptions;

/// y = x * weight + bias, as torch.nn.functional.conv2d. x: [N, C, H, W], weight: [K, C/groups, R, S], bias: [K] or
/// undefined, one floating dtype, any strides; y: [N, K, P, Q], channels_last, where
/// P = (H + 2 padding - dilation (R-1) - 1) / stride + 1, rounded down, and Q alike. x in f32 is rounded to a half
/// weight's dtype, and half x widened for an f32 weight (precision.h). Throws Error where the shapes or options make no
/// convolution. Example:
///     const Tensor x = Tensor::zeros({8, 3, 32, 32}, {.layout = Layout::channels_last});
///     const Tensor weight = Tensor::zeros({64, 3, 3, 3}, {.layout = Layout::channels_last});
///     const Tensor y = conv2d(x, weight, {}, {.stride = 2, .padding = 1});  // [8, 64, 16, 16]
Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias, const Conv2dOptions& options = {});

/// The same, and moments of y for the batch_norm() behind it (kernels::conv2d_forward_with_moments); undefined where no
/// kernels leave any.
struct ConvWithMoments {
  Tensor y, moments;  ///< the output [N, K, P, Q], and what kernels::conv2d_forward_with_moments leaves of it
};
/// Takes what conv2d() takes.
ConvWithMoments conv2d_with_moments(const Tensor& x, const Tensor& weight, const Tensor& bias,
                                    const Conv2dOptions& options = {});

}  // namespace tandem::autograd
