// resnet9: the DAWNBench network for CIFAR-10.
#include "tandem/layers/models/blocks.h"
#include "tandem/layers/models/networks.h"

namespace tandem::layers {

namespace {

std::unique_ptr<Sequential> unit(std::int64_t in_channels, std::int64_t out_channels, const ModelOptions& options,
                                 Initializer& initializer) {
  auto result = std::make_unique<Sequential>();
  add_conv_norm_relu(*result,
                     same_size({.in = in_channels, .out = out_channels, .bias = false, .impl = options.conv_impl}),
                     initializer);
  return result;
}

/// The `number`-th of two, from 1.
void add_residual(Sequential& to, std::int64_t channels, int number, const ModelOptions& options,
                  Initializer& initializer) {
  auto body = std::make_unique<Sequential>();
  for (int i = 0; i < 2; ++i)
    add_conv_norm_relu(*body, same_size({.in = channels, .out = channels, .bias = false, .impl = options.conv_impl}),
                       initializer);
  to.add<Residual>(std::move(body), options.drop_path * number / 2);
}

}  // namespace

std::unique_ptr<Module> resnet9(const ModelOptions& options) {
  Initializer initializer(options.seed);
  auto model = std::make_unique<Sequential>();
  model->add("prep", unit(options.in_channels, 64, options, initializer));
  Sequential& layer1 = model->add("layer1", unit(64, 128, options, initializer));
  layer1.add<MaxPool2d>(2);
  add_residual(layer1, 128, 1, options, initializer);
  Sequential& layer2 = model->add("layer2", unit(128, 256, options, initializer));
  layer2.add<MaxPool2d>(2);
  Sequential& layer3 = model->add("layer3", unit(256, 512, options, initializer));
  layer3.add<MaxPool2d>(2);
  add_residual(layer3, 512, 2, options, initializer);

  constexpr double kLogitScale = 0.125;
  auto classifier = std::make_unique<Sequential>();
  classifier->add<MaxPool2d>(options.image_size / 8);
  classifier->add<Flatten>();
  add_last_linear(*classifier, {.in = 512, .out = options.classes, .bias = false, .impl = options.gemm_impl}, options,
                  initializer);
  classifier->add<Scale>(kLogitScale);
  model->add("classifier", std::move(classifier));
  return model;
}

}  // namespace tandem::layers
