// small_cnn: the network for laptops.
#include "tandem/kernels/activation/activation.h"
#include "tandem/layers/models/blocks.h"
#include "tandem/layers/models/networks.h"

namespace tandem::layers {

std::unique_ptr<Module> small_cnn(const ModelOptions& options) {
  Initializer initializer(options.seed);
  auto features = std::make_unique<Sequential>();
  constexpr std::array<std::int64_t, 4> kChannels{32, 64, 128, 128};
  std::int64_t channels = options.in_channels;
  for (std::size_t i = 0; i < kChannels.size(); ++i) {
    features->add<Conv2d>(same_size({.in = channels, .out = kChannels[i], .bias = false, .impl = options.conv_impl}),
                          initializer);
    if (i + 1 < kChannels.size()) features->add<MaxPool2d>(2);
    features->add<BatchNorm2d>({.channels = kChannels[i], .activation = Activation::relu});
    channels = kChannels[i];
  }

  auto classifier = std::make_unique<Sequential>();
  classifier->add<GlobalAvgPool2d>();
  classifier->add<Flatten>();
  add_last_linear(*classifier, {.in = channels, .out = options.classes, .impl = options.gemm_impl}, options,
                  initializer);

  auto model = std::make_unique<Sequential>();
  model->add("features", std::move(features));
  model->add("classifier", std::move(classifier));
  return model;
}

}  // namespace tandem::layers
