// mnist_cnn: L equal convolutions at full resolution, with weights of their own or shared.
#include "tandem/kernels/activation/activation.h"
#include "tandem/kernels/conv/conv.h"
#include "tandem/layers/models/blocks.h"
#include "tandem/layers/models/networks.h"

#include <memory>
#include <vector>

namespace tandem::layers {

namespace {

constexpr std::int64_t kChannels = 32;

/// With a ReLU of its own where no batch norm stands between.
Conv2dOptions convolution(const ModelOptions& options, std::int64_t in) {
  return same_size({.in = in, .out = kChannels, .relu = !options.batch_norm, .impl = options.conv_impl});
}

/// Two convolutions, "0" and "2", the second applied again and again. Batch norm, where it is asked for, is not shared:
/// each application has its own, "norm1" and so on, because each has other statistics.
class SharedConvolutions final : public Module {
 public:
  SharedConvolutions(const ModelOptions& options, std::int64_t layers, Initializer& initializer)
      : layers_(layers),
        first_(convolution(options, options.in_channels), initializer),
        shared_(convolution(options, kChannels), initializer) {
    register_module("0", first_);
    register_module("2", shared_);
    for (std::int64_t layer = 0; options.batch_norm && layer < layers; ++layer) {
      norms_.push_back(
          std::make_unique<BatchNorm2d>(BatchNorm2dOptions{.channels = kChannels, .activation = Activation::relu}));
      register_module(fmt::format("norm{}", layer + 1), *norms_.back());
    }
  }
  Tensor forward(const Tensor& input) override {
    Tensor output = input;
    for (std::size_t layer = 0; layer < static_cast<std::size_t>(layers_); ++layer) {
      output = layer == 0 ? first_(output) : shared_(output);
      if (!norms_.empty()) output = (*norms_[layer])(output);
    }
    return output;
  }
  std::string describe() const override { return fmt::format("SharedConvolutions({})", layers_); }

 private:
  std::int64_t layers_;
  Conv2d first_, shared_;
  std::vector<std::unique_ptr<BatchNorm2d>> norms_;
};

}  // namespace

std::unique_ptr<Module> mnist_cnn(const ModelOptions& options) {
  Initializer initializer(options.seed);
  const std::int64_t layers = options.layers == 0 ? 4 : options.layers;
  auto model = std::make_unique<Sequential>();
  if (options.shared_weights) {
    require(layers >= 2, "model mnist_cnn: weights can be shared by 2 or more layers, got {}", layers);
    model->add("features", std::make_unique<SharedConvolutions>(options, layers, initializer));
  } else {
    auto features = std::make_unique<Sequential>();
    for (std::int64_t layer = 0; layer < layers; ++layer) {
      const Conv2dOptions conv = convolution(options, layer == 0 ? options.in_channels : kChannels);
      if (options.batch_norm)
        add_conv_norm_relu(*features, conv, initializer);
      else
        features->add<Conv2d>(conv, initializer);
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
