// Differentiable losses of each element: of numbers against targets.
// Example:
//     const Tensor output = Tensor::from<float>({1, 2, 4}, {3}), target = Tensor::from<float>({1, 0, 1}, {3});
//     const double squares = mse_loss(output, target, Reduction::sum).item();                       // 13
//     const std::vector<float> each = l1_loss(output, target, Reduction::none).to_vector<float>();  // {0, 2, 3}
//     const double binary = binary_cross_entropy_with_logits(output, target).item();                // 0.819447
#pragma once

#include "tandem/autograd/functions/reduction.h"

namespace tandem::autograd {

// Input and target: floating, of one shape (other than in PyTorch nothing is broadcast: [N, 1] against [N] is mostly a
// mistake), any strides. Computed and returned in f32 for halves (OpKind::loss). Both get gradients. mean and sum are
// added up as in mean() and sum(). Throws Error where shapes or dtypes do not fit.
//
// These are constants that are called like functions: so each can be handed on as a function of two tensors, with the
// mean as its reduction, to `.loss = autograd::mse_loss` of a train::Trainer, say.

/// The type of mse_loss.
struct MseLoss {
  /// Its value for each element, or reduced.
  Tensor operator()(const Tensor& input, const Tensor& target, Reduction reduction = Reduction::mean) const;
};

/// The type of l1_loss.
struct L1Loss {
  /// Its value for each element, or reduced.
  Tensor operator()(const Tensor& input, const Tensor& target, Reduction reduction = Reduction::mean) const;
};

/// The type of binary_cross_entropy_with_logits.
struct BinaryCrossEntropyWithLogits {
  /// Its value for each element, or reduced.
  Tensor operator()(const Tensor& input, const Tensor& target, Reduction reduction = Reduction::mean,
                    const Tensor& pos_weight = {}) const;
};

/// (input - target) squared. Keeps both.
inline constexpr MseLoss mse_loss;

/// |input - target|, with a gradient of 0 where they are equal. Keeps both.
inline constexpr L1Loss l1_loss;

/// -target log p - (1 - target) log(1 - p), p = sigmoid(input): the loss of classes that do not exclude each other, of
/// targets in [0, 1]. It is computed from the input itself, so that nothing overflows or cancels. With `pos_weight`, a
/// floating tensor (f64 where the input is, else not) that broadcasts to the input's shape, the first term counts that
/// many times; mean and sum are of weighted losses, as in PyTorch. Keeps input and target.
inline constexpr BinaryCrossEntropyWithLogits binary_cross_entropy_with_logits;

}  // namespace tandem::autograd
