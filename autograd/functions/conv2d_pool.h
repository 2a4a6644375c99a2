// Differentiable convolution and 2x2 maxima in one.
#pragma once

#include "tandem/autograd/functions/conv2d.h"

namespace tandem::autograd {

/// max_pool2d by windows of 2x2 of conv2d(x, weight, bias, options), [N,K,P/2,Q/2]; an odd last row or column is left
/// out. On tensor cores one kernel writes the maxima alone and computes no output that they do not need, backward keeps
/// a byte of each beside x and weight, and our own gradients leave out the same outputs, so that what these alone meet
/// in x, NaN or infinity, does not make the gradient of weight NaN; elsewhere it is those two operations. Takes what
/// conv2d() takes.
/// Example:
///     const Tensor x = Tensor::zeros({8, 3, 31, 31}, {.layout = Layout::channels_last});
///     const Tensor weight = Tensor::zeros({64, 3, 3, 3}, {.layout = Layout::channels_last});
///     const Tensor y = conv2d_pool(x, weight, {}, {.padding = 1});  // [8, 64, 15, 15]
Tensor conv2d_pool(const Tensor& x, const Tensor& weight, const Tensor& bias, const Conv2dOptions& options = {});

/// The same, and moments of the maxima for the batch_norm() behind them; undefined where no kernel leaves any.
ConvWithMoments conv2d_pool_with_moments(const Tensor& x, const Tensor& weight, const Tensor& bias,
                                         const Conv2dOptions& options = {});

}  // namespace tandem::autograd
