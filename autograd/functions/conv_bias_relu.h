// Differentiable convolution, bias and ReLU in one.
#pragma once

#include "tandem/core/tensor.h"
#include "tandem/kernels/conv/conv.h"

namespace tandem::autograd {

using kernels::Conv2dOptions;

/// y = max(x * weight + bias, 0); shapes and dtypes as in conv2d. Backward keeps x, weight and one bit per element of
/// y, never the convolution's own result.
/// Example:
///     const Tensor x = Tensor::zeros({8, 3, 32, 32}, {.layout = Layout::channels_last});
///     const Tensor weight = Tensor::zeros({64, 3, 3, 3}, {.layout = Layout::channels_last});
///     const Tensor y = conv_bias_relu(x, weight, Tensor::zeros({64}), {.padding = 1});  // [8, 64, 32, 32]
Tensor conv_bias_relu(const Tensor& x, const Tensor& weight, const Tensor& bias, const Conv2dOptions& options = {});

}  // namespace tandem::autograd
