// Convolution layers.
#pragma once

#include "tandem/kernels/conv/conv.h"
#include "tandem/layers/initializer.h"
#include "tandem/layers/module.h"

namespace tandem::layers {

/// PyTorch's names and defaults; in and out are channels, pairs are height and width.
struct Conv2dOptions {
  std::int64_t in = 0, out = 0;
  std::array<std::int64_t, 2> kernel{1, 1};
  std::array<std::int64_t, 2> stride{1, 1};
  std::array<std::int64_t, 2> padding{0, 0};
  std::array<std::int64_t, 2> dilation{1, 1};
  std::int64_t groups = 1;
  bool bias = true;
  bool relu = false;  ///< fused, in one kernel each way: then the layer stands for Conv2d and ReLU of an nn.Sequential
  kernels::ConvImpl impl = kernels::ConvImpl::automatic;

  kernels::Conv2dOptions kernel_options() const { return {stride, padding, dilation, groups, impl}; }
};

/// torch.nn.Conv2d: [N,C,H,W] -> [N,K,P,Q]. Parameters: weight [K, C/groups, R, S], bias [K]. Throws Error where sizes
/// are not positive or groups do not divide the channels.
/// Example:
///     Initializer initializer(1);
///     Conv2d conv({.in = 3, .out = 64, .kernel = {3, 3}, .padding = {1, 1}, .relu = true}, initializer);
///     const Tensor y = conv(Tensor::zeros({8, 3, 32, 32}, {.layout = Layout::channels_last}));  // [8, 64, 32, 32]
class Conv2d final : public Module {
 public:
  using Options = Conv2dOptions;

  Conv2d(const Options& options, Initializer& initializer);
  Tensor forward(const Tensor& input) override;
  std::string describe() const override;
  autograd::OpKind op_kind() const override { return autograd::OpKind::convolution; }
  int sequential_slots() const override { return options_.relu ? 2 : 1; }

  const Options& options() const { return options_; }
  const Tensor& weight() const { return weight_; }
  const Tensor& bias() const { return bias_; }  ///< undefined where there is none

 private:
  Options options_;
  Tensor weight_, bias_;
};

}  // namespace tandem::layers
