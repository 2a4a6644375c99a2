// Residual blocks.
#include "layers/residual.h"

#include "autograd/functions/activation.h"
#include "autograd/functions/arithmetic.h"

namespace tandem::layers {

Residual::Residual(std::unique_ptr<Sequential> body) : body_(std::move(body)) { register_module("body", *body_); }

Tensor Residual::forward(const Tensor& input) { return autograd::add(input, (*body_)(input)); }

BasicBlock::BasicBlock(std::int64_t in_channels, std::int64_t out_channels, std::int64_t stride,
                       Initializer& initializer, kernels::ConvImpl impl)
    : conv1_(in_channels, out_channels, {3, 3}, {.stride = {stride, stride}, .padding = {1, 1}, .impl = impl},
             initializer, Bias::absent),
      bn1_(out_channels, {.relu = true}),
      conv2_(out_channels, out_channels, {3, 3}, {.padding = {1, 1}, .impl = impl}, initializer, Bias::absent),
      bn2_(out_channels) {
  register_module("conv1", conv1_);
  register_module("bn1", bn1_);
  register_module("conv2", conv2_);
  register_module("bn2", bn2_);
  if (stride == 1 && in_channels == out_channels) return;
  downsample_ = std::make_unique<Sequential>();
  downsample_->add<Conv2d>(in_channels, out_channels, std::array<std::int64_t, 2>{1, 1},
                           kernels::Conv2dOptions{.stride = {stride, stride}, .impl = impl}, initializer, Bias::absent);
  downsample_->add<BatchNorm2d>(out_channels);
  register_module("downsample", *downsample_);
}

Tensor BasicBlock::forward(const Tensor& input) {
  const Tensor residual = conv2_.then(bn2_, conv1_.then(bn1_, input));
  const Tensor shortcut = downsample_ ? (*downsample_)(input) : input;
  return autograd::relu(autograd::add(residual, shortcut));
}

}  // namespace tandem::layers
