// resnet18 for small images.
#include "tandem/kernels/activation/activation.h"
#include "tandem/layers/models/blocks.h"
#include "tandem/layers/models/networks.h"

namespace tandem::layers {

std::unique_ptr<Module> resnet18(const ModelOptions& options) {
  Initializer initializer(options.seed);
  auto model = std::make_unique<Sequential>();
  model->add("conv1", std::make_unique<Conv2d>(
                          same_size({.in = options.in_channels, .out = 64, .bias = false, .impl = options.conv_impl}),
                          initializer));
  model->add("bn1", std::make_unique<BatchNorm2d>(BatchNorm2dOptions{.channels = 64, .activation = Activation::relu}));
  std::int64_t channels = 64;
  for (int stage = 1; stage <= 4; ++stage) {
    const std::int64_t out_channels = std::int64_t{32} << stage;
    auto blocks = std::make_unique<Sequential>();
    for (int block = 1; block <= 2; ++block) {
      blocks->add<BasicBlock>({.in = channels,
                               .out = out_channels,
                               .stride = stage > 1 && block == 1 ? 2 : 1,
                               .drop_path = options.drop_path * (2 * (stage - 1) + block) / 8,
                               .impl = options.conv_impl},
                              initializer);
      channels = out_channels;
    }
    model->add(fmt::format("layer{}", stage), std::move(blocks));
  }
  model->add("avgpool", std::make_unique<GlobalAvgPool2d>());
  model->add("flatten", std::make_unique<Flatten>());
  if (options.dropout > 0.0) model->add("dropout", std::make_unique<Dropout>(options.dropout));
  model->add("fc", std::make_unique<Linear>(
                       LinearOptions{.in = channels, .out = options.classes, .impl = options.gemm_impl}, initializer));
  return model;
}

}  // namespace tandem::layers
