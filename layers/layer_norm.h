// Layer normalisation.
#pragma once

#include "tandem/layers/module.h"

namespace tandem::layers {

/// PyTorch's names and defaults.
struct LayerNormOptions {
  Shape normalized_shape = {};     ///< the last sizes of the input
  double eps = 1e-5;               ///< added to the variance
  bool elementwise_affine = true;  ///< weight and bias
  bool bias = true;                ///< false: with elementwise_affine there is a weight alone
};

/// torch.nn.LayerNorm: [..., normalized_shape] -> same shape; see autograd::layer_norm. Parameters weight (ones) and
/// bias (zeros) of the normalized shape. The same in training and evaluation. Throws Error unless there are sizes, all
/// positive.
/// Example:
///     LayerNorm norm({.normalized_shape = {64}});
///     const Tensor y = norm(Tensor::zeros({8, 10, 64}));  // [8, 10, 64]
class LayerNorm final : public Module {
 public:
  /// What the constructor takes.
  using Options = LayerNormOptions;

  /// Weights begin as 1, biases as 0. Throws Error where normalized_shape is empty or has a size of 0, and for a
  /// negative eps.
  explicit LayerNorm(const Options& options);
  Tensor forward(const Tensor& input) override;
  std::string describe() const override;
  autograd::OpKind op_kind() const override { return autograd::OpKind::normalization; }

 private:
  Options options_;
  Tensor weight_, bias_;
};

}  // namespace tandem::layers
