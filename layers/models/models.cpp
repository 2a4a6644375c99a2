// From a name to a network.
#include "layers/models/models.h"

#include "core/suggest.h"
#include "layers/models/networks.h"

#include <fmt/ranges.h>

#include <array>

namespace tandem::layers {

namespace {

struct Network {
  std::unique_ptr<Module> (*make)(const ModelOptions&);
  std::int64_t smallest_image;
  bool has_layers, can_batch_norm, has_dropout;
};

const std::array<std::string, 5> kNames{"vgg_lite", "small_cnn", "mnist_cnn", "resnet9", "resnet18"};
constexpr std::array<Network, 5> kNetworks{{
    {vgg_lite, 8, false, true, true},
    {small_cnn, 8, false, true, false},
    {mnist_cnn, 2, true, false, false},
    {resnet9, 8, false, true, false},
    {resnet18, 1, false, true, false},
}};

}  // namespace

std::span<const std::string> model_names() { return kNames; }

std::unique_ptr<Module> make_model(const ModelOptions& options) {
  const auto found = std::find(kNames.begin(), kNames.end(), options.name);
  if (found == kNames.end()) {
    const std::string nearest = nearest_name(options.name, kNames);
    fail("unknown model '{}'{}; known models: {}", options.name,
         nearest.empty() ? nearest : fmt::format(", did you mean '{}'?", nearest), fmt::join(kNames, ", "));
  }
  const Network& network = kNetworks[static_cast<std::size_t>(found - kNames.begin())];

  const std::string& name = options.name;
  require(options.in_channels > 0 && options.classes > 0,
          "model {}: {} input channels and {} classes: both must be positive", name, options.in_channels,
          options.classes);
  require(options.image_size >= network.smallest_image,
          "model {}: images of {}x{} are too small, it needs {}x{} or more", name, options.image_size,
          options.image_size, network.smallest_image, network.smallest_image);
  require(options.layers >= 0, "model {}: the number of layers must be positive, got {}", name, options.layers);
  require(network.has_layers || options.layers == 0, "model {} has a fixed number of layers; only mnist_cnn takes one",
          name);
  require(network.has_layers || !options.shared_weights, "model {} has no shared weights; only mnist_cnn does", name);
  require(network.can_batch_norm || !options.batch_norm, "model {} has no batch norm; vgg_lite takes it as an option",
          name);
  require(options.dropout >= 0.0 && options.dropout < 1.0, "model {}: dropout must be in [0, 1), got {}", name,
          options.dropout);
  require(network.has_dropout || options.dropout == 0.0, "model {} has no dropout; only vgg_lite does", name);

  auto model = network.make(options);
  model->set_random_state(std::make_shared<RandomState>(options.seed));
  return model;
}

}  // namespace tandem::layers
