// Convolution layers.
#include "layers/convolution.h"

#include "autograd/functions/conv2d.h"
#include "autograd/functions/conv_bias_relu.h"
#include "autograd/functions/conv_bias_relu_pool.h"
#include "layers/batch_norm.h"
#include "layers/pooling.h"

namespace tandem::layers {

namespace {

using Pair = std::array<std::int64_t, 2>;

/// "3x5"
std::string text_of(const Pair& pair) { return fmt::format("{}x{}", pair[0], pair[1]); }

/// ", padding 1x1", or nothing at the default.
std::string setting(std::string_view name, const Pair& pair, std::int64_t usual) {
  return pair == Pair{usual, usual} ? std::string() : fmt::format(", {} {}", name, text_of(pair));
}

}  // namespace

Conv2d::Conv2d(std::int64_t in_channels, std::int64_t out_channels, Pair kernel, const kernels::Conv2dOptions& options,
               Initializer& initializer, Bias bias)
    : options_(options) {
  require(in_channels > 0 && out_channels > 0 && kernel[0] > 0 && kernel[1] > 0,
          "Conv2d: {} to {} channels with a {} kernel: all sizes must be positive", in_channels, out_channels,
          text_of(kernel));
  require(options.groups > 0 && in_channels % options.groups == 0 && out_channels % options.groups == 0,
          "Conv2d: {} groups do not divide {} input and {} output channels", options.groups, in_channels, out_channels);
  const Shape weight_shape{out_channels, in_channels / options.groups, kernel[0], kernel[1]};
  const std::int64_t fan_in = weight_shape[1] * kernel[0] * kernel[1];
  weight_ = initializer.kaiming_uniform(weight_shape, fan_in);
  if (bias == Bias::present) bias_ = initializer.kaiming_uniform({out_channels}, fan_in);
  register_parameter("weight", weight_);
  register_parameter("bias", bias_);
}

Tensor Conv2d::forward(const Tensor& input) { return autograd::conv2d(input, weight_, bias_, options_); }

bool Conv2d::fuses_with(const Module& next, const Tensor& input) const {
  const auto* const norm = dynamic_cast<const BatchNorm2d*>(&next);
  return norm != nullptr && norm->training() && input.device().type == DeviceType::cuda;
}

Tensor Conv2d::forward_with(const Module& next, const Tensor& input) {
  const auto [y, moments] = autograd::conv2d_with_moments(input, weight_, bias_, options_);
  return dynamic_cast<const BatchNorm2d&>(next).normalise(y, moments);
}

std::string Conv2d::describe() const { return describe_as("Conv2d"); }

std::string Conv2d::describe_as(std::string_view name) const {
  const std::string groups = options_.groups == 1 ? std::string() : fmt::format(", groups {}", options_.groups);
  return fmt::format("{}({}, {}, kernel {}{}{}{}{}{})", name, weight_.size(1) * options_.groups, weight_.size(0),
                     text_of({weight_.size(2), weight_.size(3)}), setting("stride", options_.stride, 1),
                     setting("padding", options_.padding, 0), setting("dilation", options_.dilation, 1), groups,
                     bias_.defined() ? "" : ", no bias");
}

ConvBiasReLU::ConvBiasReLU(std::int64_t in_channels, std::int64_t out_channels, Pair kernel,
                           const kernels::Conv2dOptions& options, Initializer& initializer)
    : Conv2d(in_channels, out_channels, kernel, options, initializer) {}

Tensor ConvBiasReLU::forward(const Tensor& input) {
  return autograd::conv_bias_relu(input, weight(), bias(), options());
}

bool ConvBiasReLU::fuses_with(const Module& next, const Tensor& input) const {
  const auto* const pool = dynamic_cast<const MaxPool2d*>(&next);
  return pool != nullptr && pool->takes_pairs() && input.device().type == DeviceType::cuda;
}

Tensor ConvBiasReLU::forward_with(const Module&, const Tensor& input) {
  return autograd::conv_bias_relu_pool(input, weight(), bias(), options());
}

std::string ConvBiasReLU::describe() const { return describe_as("ConvBiasReLU"); }

}  // namespace tandem::layers
