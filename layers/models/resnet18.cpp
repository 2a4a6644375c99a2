// resnet18 for small images.
#include "layers/models/blocks.h"
#include "layers/models/networks.h"

namespace tandem::layers {

std::unique_ptr<Module> resnet18(const ModelOptions& options) {
  Initializer initializer(options.seed);
  auto model = std::make_unique<Sequential>();
  model->add("conv1", std::make_unique<Conv2d>(options.in_channels, 64, kThreeByThree, same_size(options.conv_impl),
                                               initializer, Bias::absent));
  model->add("bn1", std::make_unique<BatchNorm2d>(64, BatchNorm2dOptions{.relu = true}));
  std::int64_t channels = 64;
  for (int stage = 1; stage <= 4; ++stage) {
    const std::int64_t out_channels = std::int64_t{32} << stage;
    auto blocks = std::make_unique<Sequential>();
    blocks->add<BasicBlock>(channels, out_channels, stage == 1 ? 1 : 2, initializer, options.conv_impl);
    blocks->add<BasicBlock>(out_channels, out_channels, 1, initializer, options.conv_impl);
    model->add(fmt::format("layer{}", stage), std::move(blocks));
    channels = out_channels;
  }
  model->add("avgpool", std::make_unique<GlobalAvgPool2d>());
  model->add("flatten", std::make_unique<Flatten>());
  model->add(
      "fc", std::make_unique<Linear>(channels, options.classes, initializer, LinearOptions{.impl = options.gemm_impl}));
  return model;
}

}  // namespace tandem::layers
