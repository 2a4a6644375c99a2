// Differentiable batch normalisation of parts of a batch, each by itself.
#pragma once

#include "tandem/autograd/functions/batch_norm.h"

#include <cstdint>

namespace tandem::autograd {

/// Batch normalisation in training of each `part` images, one behind another, by the statistics of these alone ("ghost
/// batches"; Hoffer, Hubara, Soudry: "Train longer, generalize better", 2017, arXiv:1705.08741). It makes a large batch
/// as noisy as small ones. Running statistics move by options.momentum towards the mean over all parts of their means
/// and unbiased variances, which is where those of each part, kept apart and averaged in the end, would be. Tensors and
/// errors are those of batch_norm(); options.training must be on. Throws Error also unless `part` divides the images. A
/// part is a view of the batch that batch_norm()'s kernels run over, one after another.
/// Example:
///     const Tensor x = Tensor::from<float>({1, 3, 10, 30}, {4, 1});  // rows of one channel
///     const Tensor y = ghost_batch_norm(x, {}, {}, {}, {}, 2, {.eps = 0.0});
///     const std::vector<float> values = y.to_vector<float>();  // {-1, 1, -1, 1}
Tensor ghost_batch_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
                        const Tensor& running_var, std::int64_t part, const BatchNormOptions& options);

}  // namespace tandem::autograd
