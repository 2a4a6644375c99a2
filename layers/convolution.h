// Convolution layers.
#pragma once

#include "kernels/conv/conv.h"
#include "layers/initializer.h"
#include "layers/module.h"

namespace tandem::layers {

enum class Bias : bool { absent, present };

/// torch.nn.Conv2d: [N,C,H,W] -> [N,K,P,Q]. Parameters: weight [K, C/groups, R, S], bias [K].
class Conv2d : public Module {
 public:
  Conv2d(std::int64_t in_channels, std::int64_t out_channels, std::array<std::int64_t, 2> kernel,
         const kernels::Conv2dOptions& options, Initializer& initializer, Bias bias = Bias::present);
  Tensor forward(const Tensor& input) override;
  std::string describe() const override;
  autograd::OpKind op_kind() const override { return autograd::OpKind::convolution; }

 protected:
  std::string describe_as(std::string_view name) const;
  const kernels::Conv2dOptions& options() const { return options_; }
  const Tensor& weight() const { return weight_; }
  const Tensor& bias() const { return bias_; }

 private:
  /// With a BatchNorm2d in training, on a GPU: the convolution leaves the moments of its result.
  bool fuses_with(const Module& next, const Tensor& input) const override;
  Tensor forward_with(const Module& next, const Tensor& input) override;

  kernels::Conv2dOptions options_;
  Tensor weight_, bias_;
};

/// Conv2d, then ReLU, in one kernel each way; parameters as Conv2d. Stands for both modules of an nn.Sequential.
class ConvBiasReLU final : public Conv2d {
 public:
  ConvBiasReLU(std::int64_t in_channels, std::int64_t out_channels, std::array<std::int64_t, 2> kernel,
               const kernels::Conv2dOptions& options, Initializer& initializer);
  Tensor forward(const Tensor& input) override;
  std::string describe() const override;
  int sequential_slots() const override { return 2; }

 private:
  /// With the maxima of 2x2 windows, on a GPU.
  bool fuses_with(const Module& next, const Tensor& input) const override;
  Tensor forward_with(const Module& next, const Tensor& input) override;
};

}  // namespace tandem::layers
