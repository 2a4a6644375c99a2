// Differentiable group normalisation.
#pragma once

#include "tandem/core/tensor.h"

namespace tandem::autograd {

/// As torch.nn.functional.group_norm: of x [N, C, ...], each image's channels are cut into `groups` of C / groups that
/// follow each other; each group, with all its pixels, gets mean 0 and variance 1, and each channel is multiplied by
/// its `weight` and moved by its `bias` ([C], any floating dtype; undefined: 1 and 0). eps >= 0 is added to the
/// variance. groups = C is instance normalisation. x: floating; where it is not row-major (channels_last images) it is
/// copied so, and the result is row-major. Statistics are f32 for halves (OpKind::normalization). Keeps x and two
/// numbers per group. Throws Error where shapes do not fit.
/// Example:
///     const Tensor x = Tensor::from<float>({1, 3, 10, 30}, {1, 4});
///     const std::vector<float> y = group_norm(x, 2, {}, {}, 0.0).to_vector<float>();  // {-1, 1, -1, 1}
Tensor group_norm(const Tensor& x, std::int64_t groups, const Tensor& weight = {}, const Tensor& bias = {},
                  double eps = 1e-5);

}  // namespace tandem::autograd
