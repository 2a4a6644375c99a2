// Batch normalisation.
#pragma once

#include "tandem/kernels/activation/activation.h"
#include "tandem/layers/initializer.h"
#include "tandem/layers/module.h"

namespace tandem::layers {

using kernels::Activation;

/// PyTorch's names and defaults; weight and bias are always there, and in the state dict.
struct BatchNorm2dOptions {
  std::int64_t channels = 0;  ///< C of the input [N,C,H,W]
  double momentum = 0.1;      ///< share of each batch in the running statistics
  double eps = 1e-5;          ///< added to the variance
  /// Fused: with ReLU, GELU (exact) or SiLU the layer stands for BatchNorm2d and that module of an nn.Sequential.
  Activation activation = Activation::none;
  /// Off: the weight, or gain, stays 1. It is a frozen parameter (Module::requires_grad()), as in PyTorch after
  /// `norm.weight.requires_grad = False`: names and files are the same as with one that is trained.
  bool train_weight = true;
  /// Training normalises each so many images by their own statistics, and running statistics are those of such parts;
  /// 0: by those of the whole batch. Batches in training must be multiples of it (autograd::ghost_batch_norm).
  std::int64_t ghost_batch = 0;
};

/// torch.nn.BatchNorm2d: [N,C,H,W] -> same shape. Parameters weight and bias [C]; buffers running_mean, running_var [C]
/// and num_batches_tracked (i64 scalar, on the CPU). Training normalises by the batch and updates the buffers
/// (running_var by the unbiased variance); evaluation normalises by the buffers (Ioffe and Szegedy 2015). Example:
///     BatchNorm2d norm({.channels = 64, .activation = Activation::relu});
class BatchNorm2d final : public Module {
 public:
  /// What the constructor takes.
  using Options = BatchNorm2dOptions;

  /// Weights begin as 1, biases as 0. Throws Error unless channels > 0, momentum is in [0, 1], eps >= 0
  /// and ghost_batch >= 0.
  explicit BatchNorm2d(const Options& options);
  Tensor forward(const Tensor& input) override;
  /// The same where somebody knows the moments of the input (fusion.h).
  Tensor normalise(const Tensor& input, const Tensor& moments) const;
  std::string describe() const override;
  autograd::OpKind op_kind() const override { return autograd::OpKind::normalization; }
  int sequential_slots() const override { return options_.activation == Activation::none ? 1 : 2; }

  /// What it was made of.
  const Options& options() const { return options_; }

 private:
  Options options_;
  Tensor weight_, bias_, running_mean_, running_var_, num_batches_tracked_;
};

}  // namespace tandem::layers
