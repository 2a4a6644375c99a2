// Convolution layers.
#include "tandem/layers/convolution.h"

#include "tandem/autograd/functions/conv2d.h"
#include "tandem/autograd/functions/conv_bias_relu.h"

#include <algorithm>

namespace tandem::layers {

namespace {

/// "3x5"
std::string text_of(const HeightWidth& pair) { return fmt::format("{}x{}", pair.height, pair.width); }

/// ", padding 1x1", or nothing at the default.
std::string setting(std::string_view name, const HeightWidth& pair, std::int64_t usual) {
  return pair == HeightWidth(usual) ? std::string() : fmt::format(", {} {}", name, text_of(pair));
}

/// Of the options of either layer.
template <typename Options>
void check_sizes(std::string_view layer, const Options& options) {
  const HeightWidth& kernel = options.kernel;
  require(options.in > 0 && options.out > 0 && kernel[0] > 0 && kernel[1] > 0,
          "{}: {} to {} channels with a {} kernel: all sizes must be positive", layer, options.in, options.out,
          text_of(kernel));
  require(options.groups > 0 && options.in % options.groups == 0 && options.out % options.groups == 0,
          "{}: {} groups do not divide {} input and {} output channels; give a number that divides both", layer,
          options.groups, options.in, options.out);
  const auto least = [](const HeightWidth& pair) { return std::min(pair.height, pair.width); };
  require(least(options.stride) >= 1 && least(options.dilation) >= 1 && least(options.padding) >= 0,
          "{}: stride and dilation must be at least 1, and padding at least 0, got stride {}, dilation {}, padding {}",
          layer, text_of(options.stride), text_of(options.dilation), text_of(options.padding));
}

/// "(3, 64, kernel 3x3, padding 1x1)"
template <typename Options>
std::string text_of_options(const Options& options, const std::string& more = {}) {
  const std::string groups = options.groups == 1 ? std::string() : fmt::format(", groups {}", options.groups);
  return fmt::format("({}, {}, kernel {}{}{}{}{}{}{})", options.in, options.out, text_of(options.kernel),
                     setting("stride", options.stride, 1), setting("padding", options.padding, 0), more,
                     setting("dilation", options.dilation, 1), groups, options.bias ? "" : ", no bias");
}

}  // namespace

Conv2d::Conv2d(const Options& options, Initializer& initializer) : options_(options) {
  check_sizes("Conv2d", options);
  const std::int64_t in = options.in, out = options.out, groups = options.groups;
  const HeightWidth& kernel = options.kernel;
  const Shape weight_shape{out, in / groups, kernel[0], kernel[1]};
  const std::int64_t fan_in = weight_shape[1] * kernel[0] * kernel[1];
  weight_ = initializer.kaiming_uniform(weight_shape, fan_in);
  if (options.bias) bias_ = initializer.kaiming_uniform({out}, fan_in);
  register_parameter("weight", weight_);
  register_parameter("bias", bias_);
}

Tensor Conv2d::forward(const Tensor& input) {
  return options_.relu ? autograd::conv_bias_relu(input, weight_, bias_, options_.kernel_options())
                       : autograd::conv2d(input, weight_, bias_, options_.kernel_options());
}

std::string Conv2d::describe() const { return (options_.relu ? "ConvBiasReLU" : "Conv2d") + text_of_options(options_); }

ConvTranspose2d::ConvTranspose2d(const Options& options, Initializer& initializer) : options_(options) {
  check_sizes("ConvTranspose2d", options);
  for (std::size_t i = 0; i < 2; ++i)
    require(
        options.output_padding[i] >= 0 && options.output_padding[i] < std::max(options.stride[i], options.dilation[i]),
        "ConvTranspose2d: output_padding {} must be at least 0 and less than the stride {} or the dilation {}",
        text_of(options.output_padding), text_of(options.stride), text_of(options.dilation));
  const Shape weight_shape{options.in, options.out / options.groups, options.kernel[0], options.kernel[1]};
  const std::int64_t fan_in = weight_shape[1] * weight_shape[2] * weight_shape[3];
  weight_ = initializer.kaiming_uniform(weight_shape, fan_in);
  if (options.bias) bias_ = initializer.kaiming_uniform({options.out}, fan_in);
  register_parameter("weight", weight_);
  register_parameter("bias", bias_);
}

Tensor ConvTranspose2d::forward(const Tensor& input) {
  return autograd::conv_transpose2d(input, weight_, bias_, options_.function_options());
}

std::string ConvTranspose2d::describe() const {
  return "ConvTranspose2d" + text_of_options(options_, setting("output_padding", options_.output_padding, 0));
}

}  // namespace tandem::layers
