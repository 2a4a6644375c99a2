// vgg_lite: six convolutions, three linear layers.
#include "layers/models/blocks.h"
#include "layers/models/networks.h"

namespace tandem::layers {

std::unique_ptr<Module> vgg_lite(const ModelOptions& options) {
  Initializer initializer(options.seed);
  auto features = std::make_unique<Sequential>();
  constexpr std::array<std::int64_t, 6> kChannels{32, 64, 128, 256, 256, 256};
  std::int64_t channels = options.in_channels;
  for (std::size_t i = 0; i < kChannels.size(); ++i) {
    if (options.batch_norm) {
      add_conv_norm_relu(*features, channels, kChannels[i], options.conv_impl, initializer, Bias::present);
    } else {
      features->add<ConvBiasReLU>(channels, kChannels[i], kThreeByThree, same_size(options.conv_impl), initializer);
    }
    channels = kChannels[i];
    if (i % 2 == 1) features->add<MaxPool2d>(2);
  }
  features->add<Flatten>();

  auto classifier = std::make_unique<Sequential>();
  const std::int64_t side = options.image_size / 8;
  classifier->add<Linear>(channels * side * side, 256, initializer,
                          LinearOptions{.relu = true, .impl = options.gemm_impl});
  classifier->add<Dropout>(options.dropout);
  classifier->add<Linear>(256, 32, initializer, LinearOptions{.relu = true, .impl = options.gemm_impl});
  classifier->add<Dropout>(options.dropout);
  classifier->add<Linear>(32, options.classes, initializer, LinearOptions{.impl = options.gemm_impl});

  auto model = std::make_unique<Sequential>();
  model->add("features", std::move(features));
  model->add("classifier", std::move(classifier));
  return model;
}

}  // namespace tandem::layers
