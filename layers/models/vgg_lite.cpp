// vgg_lite: six convolutions, three linear layers.
#include "tandem/layers/models/blocks.h"
#include "tandem/layers/models/networks.h"

namespace tandem::layers {

std::unique_ptr<Module> vgg_lite(const ModelOptions& options) {
  Initializer initializer(options.seed);
  auto features = std::make_unique<Sequential>();
  constexpr std::array<std::int64_t, 6> kChannels{32, 64, 128, 256, 256, 256};
  std::int64_t channels = options.in_channels;
  for (std::size_t i = 0; i < kChannels.size(); ++i) {
    if (options.batch_norm) {
      add_conv_norm_relu(*features, same_size({.in = channels, .out = kChannels[i], .impl = options.conv_impl}),
                         initializer);
    } else {
      features->add<Conv2d>(same_size({.in = channels, .out = kChannels[i], .relu = true, .impl = options.conv_impl}),
                            initializer);
    }
    channels = kChannels[i];
    if (i % 2 == 1) features->add<MaxPool2d>(2);
  }
  features->add<Flatten>();

  auto classifier = std::make_unique<Sequential>();
  const std::int64_t side = options.image_size / 8;
  classifier->add<Linear>({.in = channels * side * side, .out = 256, .relu = true, .impl = options.gemm_impl},
                          initializer);
  classifier->add<Dropout>(options.dropout);
  classifier->add<Linear>({.in = 256, .out = 32, .relu = true, .impl = options.gemm_impl}, initializer);
  classifier->add<Dropout>(options.dropout);
  classifier->add<Linear>({.in = 32, .out = options.classes, .impl = options.gemm_impl}, initializer);

  auto model = std::make_unique<Sequential>();
  model->add("features", std::move(features));
  model->add("classifier", std::move(classifier));
  return model;
}

}  // namespace tandem::layers
