// Differentiable average pooling.
#pragma once

#include "tandem/core/tensor.h"
#include "tandem/kernels/pool/pool2d_options.h"

namespace tandem::autograd {

using kernels::Pool2dOptions;

/// The mean of each window of x ([N, C, H, W], floating), as torch.nn.functional.avg_pool2d; channels_last. Keeps
/// nothing.
/// Example:
///     const Tensor x = Tensor::zeros({8, 64, 16, 16});
///     const Tensor y = avg_pool2d(x, {.kernel = 2, .stride = 2});  // [8, 64, 8, 8]
Tensor avg_pool2d(const Tensor& x, const Pool2dOptions& options);

}  // namespace tandem::autograd
