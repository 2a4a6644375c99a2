// Differentiable change of dtype.
#pragma once

#include "tandem/core/tensor.h"

namespace tandem::autograd {

/// x in another dtype, rounded as kernels::cast says; x itself if it has that dtype already. Gradients are cast back; a
/// cast to an integer dtype is not recorded.
/// Example:
///     const Tensor half = cast(Tensor::full({2}, 0.1), DType::bf16);
///     const std::vector<float> values = half.to_vector<float>();  // {0.100098, 0.100098}
Tensor cast(const Tensor& x, DType dtype);

}  // namespace tandem::autograd
