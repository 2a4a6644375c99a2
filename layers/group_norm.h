// Group normalisation.
#pragma once

#include "tandem/layers/module.h"

namespace tandem::layers {

/// PyTorch's names and defaults.
struct GroupNormOptions {
  std::int64_t groups = 0, channels = 0;  ///< groups divide the channels
  double eps = 1e-5;                      ///< added to the variance
  bool affine = true;                     ///< weight and bias
};

/// torch.nn.GroupNorm: [N, channels, ...] -> same shape; see autograd::group_norm. Parameters weight (ones) and bias
/// (zeros), [channels]. The same in training and evaluation. Throws Error unless groups divide channels.
/// Example:
///     GroupNorm norm({.groups = 8, .channels = 64});
///     const Tensor y = norm(Tensor::zeros({2, 64, 7, 7}));  // [2, 64, 7, 7]
class GroupNorm final : public Module {
 public:
  /// What the constructor takes.
  using Options = GroupNormOptions;

  /// Weights begin as 1, biases as 0. Throws Error where groups do not divide the channels, and for a negative eps.
  explicit GroupNorm(const Options& options);
  Tensor forward(const Tensor& input) override;
  std::string describe() const override;
  autograd::OpKind op_kind() const override { return autograd::OpKind::normalization; }

 private:
  Options options_;
  Tensor weight_, bias_;
};

}  // namespace tandem::layers
