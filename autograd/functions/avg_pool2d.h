// Differentiable average pooling.
#pragma once

#include "tandem/core/tensor.h"
#include "tandem/kernels/pool/pool2d_options.h"

namespace tandem::autograd {

using kernels::Pool2dOptions;

/// The mean of each window of x ([N, C, H, W], floating), as torch.nn.functional.avg_pool2d; channels_last. Keeps
/// nothing.
Tensor avg_pool2d(const Tensor& x, const Pool2dOptions& options);

}  // namespace tandem::autograd
