// Differentiable max pooling.
#pragma once

#include "tandem/core/tensor.h"
#include "tandem/kernels/pool/pool2d_options.h"

namespace tandem::autograd {

using kernels::Pool2dOptions;

/// The maximum of each window of x ([N, C, H, W], floating), as torch.nn.functional.max_pool2d; channels_last. Backward
/// keeps the winners' positions only, a byte each, or four where a window has more than 256.
/// Example:
///     const Tensor x = Tensor::zeros({8, 64, 16, 16});
///     const Tensor y = max_pool2d(x, {.kernel = 3, .stride = 2, .padding = 1});  // [8, 64, 8, 8]
Tensor max_pool2d(const Tensor& x, const Pool2dOptions& options);

}  // namespace tandem::autograd
