// Residual blocks.
#include "tandem/layers/residual.h"

#include "tandem/autograd/functions/activation.h"
#include "tandem/autograd/functions/arithmetic.h"
#include "tandem/layers/fusion.h"

namespace tandem::layers {

Residual::Residual(std::unique_ptr<Sequential> body, double drop_path) : body_(std::move(body)), drop_path_(drop_path) {
  require(body_ != nullptr, "Residual: there is no body; give a Sequential of what is added to the input");
  register_module("body", *body_);
  if (drop_path > 0.0) register_module("drop_path", drop_path_);
}

Tensor Residual::forward(const Tensor& input) { return autograd::add(input, drop_path_((*body_)(input))); }

BasicBlock::BasicBlock(const Options& options, Initializer& initializer)
    : conv1_({.in = options.in,
              .out = options.out,
              .kernel = 3,
              .stride = options.stride,
              .padding = 1,
              .bias = false,
              .impl = options.impl},
             initializer),
      bn1_({.channels = options.out, .activation = Activation::relu}),
      conv2_({.in = options.out, .out = options.out, .kernel = 3, .padding = 1, .bias = false, .impl = options.impl},
             initializer),
      bn2_({.channels = options.out}),
      drop_path_(options.drop_path) {
  register_module("conv1", conv1_);
  register_module("bn1", bn1_);
  register_module("conv2", conv2_);
  register_module("bn2", bn2_);
  if (options.drop_path > 0.0) register_module("drop_path", drop_path_);
  if (options.stride == 1 && options.in == options.out) return;
  downsample_ = std::make_unique<Sequential>();
  downsample_->add<Conv2d>(
      {.in = options.in, .out = options.out, .stride = options.stride, .bias = false, .impl = options.impl},
      initializer);
  downsample_->add<BatchNorm2d>({.channels = options.out});
  register_module("downsample", *downsample_);
}

Tensor BasicBlock::forward(const Tensor& input) {
  const Tensor residual = drop_path_(call_all({conv1_, bn1_, conv2_, bn2_}, input));
  const Tensor shortcut = downsample_ ? (*downsample_)(input) : input;
  return autograd::relu(autograd::add(residual, shortcut));
}

}  // namespace tandem::layers
