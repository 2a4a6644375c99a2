// Convolution layers.
#pragma once

#include "tandem/autograd/functions/conv_transpose2d.h"
#include "tandem/core/height_width.h"
#include "tandem/kernels/conv/conv.h"
#include "tandem/layers/initializer.h"
#include "tandem/layers/module.h"

namespace tandem::layers {

/// PyTorch's names and defaults; in and out are channels.
struct Conv2dOptions {
  std::int64_t in = 0, out = 0;  ///< channels
  HeightWidth kernel = 1;        ///< height and width
  HeightWidth stride = 1;        ///< from one output to the next, in pixels
  HeightWidth padding = 0;       ///< zeros on each side, in pixels
  HeightWidth dilation = 1;      ///< distance between the kernel's elements
  std::int64_t groups = 1;       ///< into which the channels are divided
  bool bias = true;              ///< whether there is one for each output channel
  bool relu = false;  ///< fused, in one kernel each way: then the layer stands for Conv2d and ReLU of an nn.Sequential
  kernels::ConvImpl impl = kernels::ConvImpl::automatic;  ///< which code computes it

  /// The part that the convolution itself takes.
  kernels::Conv2dOptions kernel_options() const { return {stride, padding, dilation, groups, impl}; }
};

/// torch.nn.Conv2d: [N,C,H,W] -> [N,K,P,Q]. Parameters: weight [K, C/groups, R, S], bias [K]. Throws Error where sizes
/// are not positive, padding is negative or groups do not divide the channels.
/// Example:
///     Initializer initializer(1);
///     Conv2d conv({.in = 3, .out = 64, .kernel = 3, .padding = 1, .relu = true}, initializer);
///     const Tensor y = conv(Tensor::zeros({8, 3, 32, 32}, {.layout = Layout::channels_last}));  // [8, 64, 32, 32]
class Conv2d final : public Module {
 public:
  /// What the constructor takes.
  using Options = Conv2dOptions;

  /// Draws weight and bias as PyTorch does.
  Conv2d(const Options& options, Initializer& initializer);
  Tensor forward(const Tensor& input) override;
  std::string describe() const override;
  autograd::OpKind op_kind() const override { return autograd::OpKind::convolution; }
  int sequential_slots() const override { return options_.relu ? 2 : 1; }

  /// What it was made of.
  /// @{
  const Options& options() const { return options_; }
  const Tensor& weight() const { return weight_; }
  /// @}
  const Tensor& bias() const { return bias_; }  ///< undefined where there is none

 private:
  Options options_;
  Tensor weight_, bias_;
};

/// PyTorch's names and defaults; in and out are channels.
struct ConvTranspose2dOptions {
  std::int64_t in = 0, out = 0;                           ///< channels
  HeightWidth kernel = 1;                                 ///< height and width
  HeightWidth stride = 1;                                 ///< by which the output grows
  HeightWidth padding = 0;                                ///< taken off the output on each side
  HeightWidth output_padding = 0;                         ///< less than the stride or the dilation
  HeightWidth dilation = 1;                               ///< distance between the kernel's elements
  std::int64_t groups = 1;                                ///< into which the channels are divided
  bool bias = true;                                       ///< whether there is one for each output channel
  kernels::ConvImpl impl = kernels::ConvImpl::automatic;  ///< which code computes it

  /// The part that the function itself takes.
  autograd::ConvTranspose2dOptions function_options() const {
    return {stride, padding, output_padding, dilation, groups, impl};
  }
};

/// torch.nn.ConvTranspose2d: [N,C,H,W] -> [N,K,P,Q], larger by the stride (autograd/functions/conv_transpose2d.h).
/// Parameters: weight [C, K/groups, R, S], bias [K], drawn as PyTorch does, with K/groups R S as fan_in. Throws Error
/// as Conv2d does, and for an output_padding that is too large.
/// Example:
///     Initializer initializer(1);
///     ConvTranspose2d twice({.in = 64, .out = 32, .kernel = 2, .stride = 2}, initializer);
///     const Tensor y = twice(Tensor::zeros({8, 64, 16, 16}, {.layout = Layout::channels_last}));  // [8, 32, 32, 32]
class ConvTranspose2d final : public Module {
 public:
  /// What the constructor takes.
  using Options = ConvTranspose2dOptions;

  /// Draws weight and bias as PyTorch does.
  ConvTranspose2d(const Options& options, Initializer& initializer);
  Tensor forward(const Tensor& input) override;
  std::string describe() const override;
  autograd::OpKind op_kind() const override { return autograd::OpKind::convolution; }

  /// What it was made of.
  /// @{
  const Options& options() const { return options_; }
  const Tensor& weight() const { return weight_; }
  /// @}
  const Tensor& bias() const { return bias_; }  ///< undefined where there is none

 private:
  Options options_;
  Tensor weight_, bias_;
};

}  // namespace tandem::layers
