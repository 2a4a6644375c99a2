// Negative log likelihood of labels.
#pragma once

#include "tandem/core/out.h"

#include <cstdint>
#include <optional>

namespace tandem::kernels {

/// How much each row counts.
struct LabelWeights {
  Tensor of_classes = {};                         ///< [C], floating, any stride; undefined: each counts 1
  std::optional<std::int64_t> ignore_index = {};  ///< rows with this label count 0; it may be outside of the classes
};

/// losses[n] = -w log_probabilities[n, labels[n]] and row_weights[n] = w, what the row counts. log_probabilities: [N,
/// C] with C >= 1, floating, any strides; labels: i64[N], each in [0, C) or the one that is ignored; losses and
/// row_weights (which may be undefined): [N] of softmax_cross_entropy_dtype, any strides. Throws Error where that does
/// not hold; other labels are treated as by softmax_cross_entropy_forward: an Error on the CPU, on a GPU a loss of NaN.
void nll_loss_forward(const Tensor& log_probabilities, const Tensor& labels, const Out& losses,
                      const LabelWeights& weights = {}, const Out& row_weights = Out());

/// grad[n, c] = -w grad_losses[n] where c is labels[n], else 0; overwrites grad ([N, C], any floating dtype, any
/// strides). grad_losses: [N], any floating dtype and strides. On a GPU, a label outside of the classes makes its row
/// NaN.
void nll_loss_backward(const Tensor& labels, const Tensor& grad_losses, const Out& grad,
                       const LabelWeights& weights = {});

}  // namespace tandem::kernels
