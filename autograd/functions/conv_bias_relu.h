// Differentiable convolution, bias and ReLU in one.
#pragma once

#include "tandem/core/tensor.h"
#include "tandem/kernels/conv/conv.h"

namespace tandem::autograd {

using kernels::Conv2dOptions;

/// y = max(x * weight + bias, 0); shapes and dtypes as in conv2d. Backward keeps x, weight and one bit per element of
/// y, never the convolution's own result.
Tensor conv_bias_relu(const Tensor& x, const Tensor& weight, const Tensor& bias, const Conv2dOptions& options = {});

}  // namespace tandem::autograd
