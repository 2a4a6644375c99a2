// Differentiable negative log likelihood.
#pragma once

#include "tandem/autograd/functions/reduction.h"
#include "tandem/kernels/loss/nll_loss.h"

namespace tandem::autograd {

using kernels::LabelWeights;

/// The type of nll_loss.
struct NllLoss {
  /// Its value for each row, or reduced.
  Tensor operator()(const Tensor& log_probabilities, const Tensor& labels, Reduction reduction = Reduction::mean,
                    const LabelWeights& weights = {}) const;
};

/// -log_probabilities[n, labels[n]] for each row n, reduced: of log_softmax(logits, 1) the softmax_cross_entropy of
/// these logits. log_probabilities: [N, C], floating, any strides; labels: i64[N] in [0, C). The result is f32 for
/// halves (OpKind::loss); Reduction::none gives [N]. With `weights`, PyTorch's weight and ignore_index, each loss is
/// multiplied by what its row counts, 0 for ignored ones, and the mean is divided by the sum of that (NaN where no row
/// counts). They get no gradient. Keeps the labels. A label outside of the classes is an Error on the CPU, and NaN on a
/// GPU: see kernels::nll_loss_forward. A constant that is called like a function: see mse_loss.
/// Example:
///     const Tensor log_p = Tensor::from<float>({-1, -2, -3, -4}, {2, 2});
///     const Tensor labels = Tensor::from<std::int64_t>({1, 0}, {2});
///     const double loss = nll_loss(log_p, labels).item();                                           // 2.5
///     const double first = nll_loss(log_p, labels, Reduction::mean, {.ignore_index = 0}).item();  // 2
inline constexpr NllLoss nll_loss;

/// Of each row: its loss, which is recorded, and what it counts.
struct RowLosses {
  Tensor losses, weights;  ///< both f32 [N], or f64; no weights, an undefined tensor, where each row counts 1
};
/// Takes what nll_loss takes.
RowLosses nll_of_rows(const Tensor& log_probabilities, const Tensor& labels, const LabelWeights& weights);

/// Losses of rows that count so much, reduced.
Tensor reduce_weighted(const RowLosses& rows, Reduction reduction);

}  // namespace tandem::autograd
