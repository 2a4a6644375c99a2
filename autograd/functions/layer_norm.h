// Differentiable layer normalisation.
#pragma once

#include "tandem/core/tensor.h"

namespace tandem::autograd {

/// As torch.nn.functional.layer_norm: each run of the last dimensions, whose sizes are `normalized_shape`, gets mean 0
/// and variance 1, is multiplied by `weight` and moved by `bias` (both of that shape, any floating dtype; undefined: 1
/// and 0). eps >= 0 is added to the variance. x: floating; where it is not row-major it is copied so, and the result is
/// row-major. Statistics are f32 for halves (OpKind::normalization). Keeps x and two numbers per run. Throws Error
/// where shapes do not fit.
/// Example:
///     const Tensor x = Tensor::from<float>({1, 3, 10, 30}, {2, 2});
///     const std::vector<float> y = layer_norm(x, {2}, {}, {}, 0.0).to_vector<float>();  // {-1, 1, -1, 1}
Tensor layer_norm(const Tensor& x, const Shape& normalized_shape, const Tensor& weight = {}, const Tensor& bias = {},
                  double eps = 1e-5);

}  // namespace tandem::autograd
