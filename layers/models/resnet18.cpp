// resnet18 for small images.
#include "tandem/layers/models/blocks.h"
#include "tandem/layers/models/networks.h"

namespace tandem::layers {

std::unique_ptr<Module> resnet18(const ModelOptions& options) {
  Initializer initializer(options.seed);
  auto model = std::make_unique<Sequential>();
  model->add("conv1", std::make_unique<Conv2d>(
                          same_size({.in = options.in_channels, .out = 64, .bias = false, .impl = options.conv_impl}),
                          initializer));
  model->add("bn1", std::make_unique<BatchNorm2d>(BatchNorm2dOptions{.channels = 64, .relu = true}));
  std::int64_t channels = 64;
  for (int stage = 1; stage <= 4; ++stage) {
    const std::int64_t out_channels = std::int64_t{32} << stage;
    auto blocks = std::make_unique<Sequential>();
    blocks->add<BasicBlock>(
        {.in = channels, .out = out_channels, .stride = stage == 1 ? 1 : 2, .impl = options.conv_impl}, initializer);
    blocks->add<BasicBlock>({.in = out_channels, .out = out_channels, .impl = options.conv_impl}, initializer);
    model->add(fmt::format("layer{}", stage), std::move(blocks));
    channels = out_channels;
  }
  model->add("avgpool", std::make_unique<GlobalAvgPool2d>());
  model->add("flatten", std::make_unique<Flatten>());
  model->add("fc", std::make_unique<Linear>(
                       LinearOptions{.in = channels, .out = options.classes, .impl = options.gemm_impl}, initializer));
  return model;
}

}  // namespace tandem::layers
