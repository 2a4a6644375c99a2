// Convolution layers.
#include "tandem/layers/convolution.h"

#include "tandem/autograd/functions/conv2d.h"
#include "tandem/autograd/functions/conv_bias_relu.h"

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

Conv2d::Conv2d(const Options& options, Initializer& initializer) : options_(options) {
  const std::int64_t in = options.in, out = options.out, groups = options.groups;
  const Pair& kernel = options.kernel;
  require(in > 0 && out > 0 && kernel[0] > 0 && kernel[1] > 0,
          "Conv2d: {} to {} channels with a {} kernel: all sizes must be positive", in, out, text_of(kernel));
  require(groups > 0 && in % groups == 0 && out % groups == 0,
          "Conv2d: {} groups do not divide {} input and {} output channels", groups, in, out);
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

std::string Conv2d::describe() const {
  const std::string groups = options_.groups == 1 ? std::string() : fmt::format(", groups {}", options_.groups);
  return fmt::format("{}({}, {}, kernel {}{}{}{}{}{})", options_.relu ? "ConvBiasReLU" : "Conv2d", options_.in,
                     options_.out, text_of(options_.kernel), setting("stride", options_.stride, 1),
                     setting("padding", options_.padding, 0), setting("dilation", options_.dilation, 1), groups,
                     options_.bias ? "" : ", no bias");
}

}  // namespace tandem::layers
