// Differentiable softmax cross-entropy.
#pragma once

#include "tandem/autograd/functions/nll_loss.h"

namespace tandem::autograd {

/// Mean cross-entropy of softmax(logits) against the labels, rank 0, as torch.nn.functional.cross_entropy: f64 for f64
/// logits, else f32. logits: [N, C], floating; labels: i64[N] in [0, C), or class probabilities, floating [N, C], which
/// get no gradient. label_smoothing in [0, 1]. Throws Error where that does not hold; of a label outside of the classes
/// a GPU makes NaN (kernels::softmax_cross_entropy_forward). Example:
///     const Tensor logits = Tensor::from<float>({0, 0, 9, 0, 9, 0}, {2, 3});
///     const Tensor labels = Tensor::from<std::int64_t>({2, 0}, {2});
///     const double loss = softmax_cross_entropy(logits, labels).item();  // 4.50025
Tensor softmax_cross_entropy(const Tensor& logits, const Tensor& labels, double label_smoothing = 0.0);

/// PyTorch's names and defaults, but that no label is ignored unless one is named.
struct CrossEntropyOptions {
  Tensor weight = {};                             ///< of each class, floating [C], without a gradient; undefined: 1
  std::optional<std::int64_t> ignore_index = {};  ///< rows with this label do not count
  double label_smoothing = 0.0;                   ///< share of the target that is spread over all classes
  Reduction reduction = Reduction::mean;          ///< the mean is divided by the sum of what the rows count
};

/// The same of labels i64[N] that do not all count alike; Reduction::none gives [N]. With options it is nll_loss() of
/// log_softmax(), in more than one kernel.
/// Example:
///     const Tensor logits = Tensor::from<float>({0, 0, 9, 0, 9, 0}, {2, 3});
///     const Tensor labels = Tensor::from<std::int64_t>({-100, 0}, {2});
///     const double loss = softmax_cross_entropy(logits, labels, {.ignore_index = -100}).item();  // 9.00025
Tensor softmax_cross_entropy(const Tensor& logits, const Tensor& labels, const CrossEntropyOptions& options);

}  // namespace tandem::autograd
