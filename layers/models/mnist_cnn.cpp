// mnist_cnn: L equal convolutions at full resolution, with weights of their own or shared.
#include "tandem/kernels/conv/conv.h"
#include "tandem/layers/models/blocks.h"
#include "tandem/layers/models/networks.h"

namespace tandem::layers {

namespace {

constexpr std::int64_t kChannels = 32;

/// Two convolutions, "0" and "2", the second applied again and again.
class SharedConvolutions final : public Module {
 public:
  SharedConvolutions(std::int64_t in_channels, std::int64_t layers, kernels::ConvImpl impl, Initializer& initializer)
      : layers_(layers),
        first_(same_size({.in = in_channels, .out = kChannels, .relu = true, .impl = impl}), initializer),
        shared_(same_size({.in = kChannels, .out = kChannels, .relu = true, .impl = impl}), initializer) {
    register_module("0", first_);
    register_module("2", shared_);
  }
  Tensor forward(const Tensor& input) override {
    Tensor output = first_(input);
    for (std::int64_t layer = 1; layer < layers_; ++layer) output = shared_(output);
    return output;
  }
  std::string describe() const override { return fmt::format("SharedConvolutions({})", layers_); }

 private:
  std::int64_t layers_;
  Conv2d first_, shared_;
};

}  // namespace

std::unique_ptr<Module> mnist_cnn(const ModelOptions& options) {
  Initializer initializer(options.seed);
  const std::int64_t layers = options.layers == 0 ? 4 : options.layers;
  auto model = std::make_unique<Sequential>();
  if (options.shared_weights) {
    require(layers >= 2, "model mnist_cnn: weights can be shared by 2 or more layers, got {}", layers);
    model->add("features",
               std::make_unique<SharedConvolutions>(options.in_channels, layers, options.conv_impl, initializer));
  } else {
    auto features = std::make_unique<Sequential>();
    for (std::int64_t layer = 0; layer < layers; ++layer) {
      features->add<Conv2d>(same_size({.in = layer == 0 ? options.in_channels : kChannels,
                                       .out = kChannels,
                                       .relu = true,
                                       .impl = options.conv_impl}),
                            initializer);
    }
    model->add("features", std::move(features));
  }

  auto classifier = std::make_unique<Sequential>();
  const std::int64_t side = options.image_size / 2;
  classifier->add<MaxPool2d>(2);
  classifier->add<Flatten>();
  add_last_linear(*classifier, {.in = kChannels * side * side, .out = options.classes, .impl = options.gemm_impl},
                  options, initializer);
  model->add("classifier", std::move(classifier));
  return model;
}

}  // namespace tandem::layers
