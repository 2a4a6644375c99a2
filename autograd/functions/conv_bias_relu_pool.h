// Differentiable convolution, bias, ReLU and 2x2 maxima in one.
#pragma once

#include "tandem/core/tensor.h"
#include "tandem/kernels/conv/conv.h"

namespace tandem::autograd {

using kernels::Conv2dOptions;

/// max_pool2d by windows of 2x2 of conv_bias_relu(x, weight, bias, options), [N,K,P/2,Q/2]; an odd last row or column
/// is left out. On tensor cores one kernel writes the maxima alone, and backward keeps a byte and a bit of each beside
/// x and weight; elsewhere it is those two operations.
/// Example:
///     const Tensor x = Tensor::zeros({8, 3, 32, 32}, {.layout = Layout::channels_last});
///     const Tensor weight = Tensor::zeros({64, 3, 3, 3}, {.layout = Layout::channels_last});
///     const Tensor y = conv_bias_relu_pool(x, weight, Tensor::zeros({64}), {.padding = 1});  // [8, 64, 16, 16]
Tensor conv_bias_relu_pool(const Tensor& x, const Tensor& weight, const Tensor& bias,
                           const Conv2dOptions& options = {});

}  // namespace tandem::autograd
