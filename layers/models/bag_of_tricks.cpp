// bag_of_tricks: resnet9 with a whitening, CELU and batch norm over parts of a batch.
#include "tandem/layers/models/blocks.h"
#include "tandem/layers/models/networks.h"

#include <algorithm>
#include <cmath>

namespace tandem::layers {

namespace {

/// The network's parts, one of which is made after the other.
class Parts {
 public:
  explicit Parts(const ModelOptions& options) : options_(options), initializer_(options.seed) {}

  std::unique_ptr<Sequential> first(std::int64_t out) {
    constexpr double kEps = 1e-2;
    auto part = std::make_unique<Sequential>();
    const auto& whiten = part->add<Whitening2d>({.in = options_.in_channels,
                                                 .kernel = 3,
                                                 .eps = kEps,
                                                 .padding = 1,
                                                 .with_negatives = false,
                                                 .with_bias = false,
                                                 .impl = options_.conv_impl},
                                                initializer_);
    part->add<Conv2d>({.in = whiten.channels(), .out = out, .bias = false, .impl = options_.conv_impl}, initializer_);
    add_norm(*part, out);
    return part;
  }

  std::unique_ptr<Sequential> unit_with_pool(std::int64_t in, std::int64_t out) {
    auto part = std::make_unique<Sequential>();
    add_convolution(*part, in, out);
    part->add<MaxPool2d>(2);
    add_norm(*part, out);
    return part;
  }

  /// The `number`-th of two, from 1.
  void add_residual(Sequential& to, std::int64_t channels, int number) {
    auto body = std::make_unique<Sequential>();
    for (int i = 0; i < 2; ++i) {
      add_convolution(*body, channels, channels);
      add_norm(*body, channels);
    }
    to.add<Residual>(std::move(body), options_.drop_path * number / 2);
  }

  std::unique_ptr<Sequential> classifier(std::int64_t in) {
    constexpr double kLogitScale = 1.0 / 16.0;
    auto part = std::make_unique<Sequential>();
    part->add<MaxPool2d>(options_.image_size / 8);
    part->add<Flatten>();
    add_last_linear(*part, {.in = in, .out = options_.classes, .bias = false, .impl = options_.gemm_impl}, options_,
                    initializer_);
    part->add<Scale>(kLogitScale);
    return part;
  }

 private:
  void add_convolution(Sequential& to, std::int64_t in, std::int64_t out) {
    to.add<Conv2d>(same_size({.in = in, .out = out, .bias = false, .impl = options_.conv_impl}), initializer_);
  }
  void add_norm(Sequential& to, std::int64_t channels) {
    to.add<BatchNorm2d>({.channels = channels,
                         .momentum = options_.norm_momentum.value_or(0.1),
                         .train_weight = false,
                         .ghost_batch = options_.ghost_batch});
    to.add<CELU>(options_.celu_alpha);
  }

  const ModelOptions& options_;
  Initializer initializer_;
};

}  // namespace

std::unique_ptr<Module> bag_of_tricks(const ModelOptions& options) {
  const auto channels = [&](double at_width_1) {
    return std::max(std::int64_t{1}, static_cast<std::int64_t>(std::llround(options.width * at_width_1)));
  };
  Parts parts(options);
  auto model = std::make_unique<Sequential>();
  model->add("prep", parts.first(channels(64)));
  Sequential& layer1 = model->add("layer1", parts.unit_with_pool(channels(64), channels(128)));
  parts.add_residual(layer1, channels(128), 1);
  model->add("layer2", parts.unit_with_pool(channels(128), channels(256)));
  Sequential& layer3 = model->add("layer3", parts.unit_with_pool(channels(256), channels(512)));
  parts.add_residual(layer3, channels(512), 2);
  model->add("classifier", parts.classifier(channels(512)));
  return model;
}

}  // namespace tandem::layers
