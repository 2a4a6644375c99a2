// From a name to a network.
#include "tandem/layers/models/models.h"

#include "tandem/core/suggest.h"
#include "tandem/layers/models/networks.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace tandem::layers {

namespace {

constexpr ModelEntry airbench_entry(std::string_view name, std::unique_ptr<Module> (*make)(const ModelOptions&),
                                    bool has_drop_path) {
  return {.name = name,
          .make = make,
          .smallest_image = 9,
          .has_batch_norm = true,
          .has_drop_path = has_drop_path,
          .has_width = true,
          .is_airbench = true,
          .has_norm_momentum = true};
}

constexpr ModelEntry kModels[] = {
    {.name = "vgg_lite", .make = vgg_lite, .smallest_image = 8, .takes_batch_norm = true},
    {.name = "small_cnn", .make = small_cnn, .smallest_image = 8, .has_batch_norm = true},
    {.name = "mnist_cnn", .make = mnist_cnn, .smallest_image = 2, .has_layers = true, .takes_batch_norm = true},
    {.name = "resnet9", .make = resnet9, .smallest_image = 8, .has_batch_norm = true, .has_drop_path = true},
    {.name = "resnet18", .make = resnet18, .smallest_image = 1, .has_batch_norm = true, .has_drop_path = true},
    airbench_entry("airbench94", airbench94, false),
    airbench_entry("airbench95", airbench95, false),
    airbench_entry("airbench96", airbench96, true),
    {.name = "bag_of_tricks",
     .make = bag_of_tricks,
     .smallest_image = 8,
     .has_batch_norm = true,
     .has_drop_path = true,
     .has_width = true,
     .has_ghost_batch = true,
     .has_norm_momentum = true},
};

/// "only mnist_cnn"
std::string only(bool ModelEntry::* with) { return "only " + one_of(model_names(with)); }

/// "a, b and c"
std::string all_of(const std::vector<std::string>& names) {
  const std::span<const std::string> first(names.data(), names.size() - 1);
  return fmt::format("{}{}{}", fmt::join(first, ", "), first.empty() ? "" : " and ", names.back());
}

void check_airbench(const ModelEntry& network, const ModelOptions& options) {
  const auto with = [] { return all_of(model_names(&ModelEntry::is_airbench)); };
  require(options.activation == "gelu" || options.activation == "silu",
          "model {}: activation '{}': choose from gelu, silu", network.name, options.activation);
  require(network.is_airbench || options.activation == "gelu", "model {} has an activation of its own; {} take one",
          network.name, with());
  require(network.is_airbench || !options.unit_head, "model {} has no unit_head; {} take it", network.name, with());
  require(network.is_airbench || !options.draw_whitening_bias,
          "model {} has no bias of a whitening to draw; {} have one", network.name, with());
  require(network.is_airbench || options.whitening, "model {} cannot do without whitening; {} can", network.name,
          with());
  require(network.is_airbench || options.identity_filters, "model {} has no identity_filters; {} have them",
          network.name, with());
  require(options.whitening || !options.draw_whitening_bias,
          "model {}: draw_whitening_bias without whitening: the first bias is drawn in any case", network.name);
}

void check_norms(const ModelEntry& network, const ModelOptions& options) {
  const ModelOptions defaults;
  const auto with = [] { return only(&ModelEntry::has_ghost_batch); };
  require(std::isfinite(options.celu_alpha) && options.celu_alpha > 0.0,
          "model {}: celu_alpha must be a finite number above 0, got {}", network.name, options.celu_alpha);
  require(network.has_ghost_batch || options.celu_alpha == defaults.celu_alpha, "model {} has no CELUs; {} does",
          network.name, with());
  require(options.ghost_batch >= 0, "model {}: ghost_batch must be a number of images, or 0 for whole batches, got {}",
          network.name, options.ghost_batch);
  require(network.has_ghost_batch || options.ghost_batch == defaults.ghost_batch,
          "model {} takes no ghost_batch; {} does", network.name, with());
  const double momentum = options.norm_momentum.value_or(0.0);
  require(momentum >= 0.0 && momentum <= 1.0, "model {}: norm_momentum must be from 0 to 1, got {}", network.name,
          momentum);
  require(network.has_norm_momentum || !options.norm_momentum,
          "model {} has a fixed momentum of batch norm; {} take one", network.name,
          all_of(model_names(&ModelEntry::has_norm_momentum)));
}

}  // namespace

std::span<const ModelEntry> models() { return kModels; }

std::vector<std::string> model_names(bool ModelEntry::* with) {
  std::vector<std::string> names;
  for (const ModelEntry& entry : kModels)
    if (with == nullptr || entry.*with) names.emplace_back(entry.name);
  return names;
}

std::unique_ptr<Module> make_model(const ModelOptions& options) {
  const auto* const found = std::ranges::find(kModels, options.name, &ModelEntry::name);
  if (found == std::end(kModels)) fail("{}", unknown_name("model", options.name, model_names()));
  const ModelEntry& network = *found;

  const std::string& name = options.name;
  require(options.in_channels > 0 && options.classes > 0,
          "model {}: {} input channels and {} classes: both must be positive", name, options.in_channels,
          options.classes);
  require(options.image_size >= network.smallest_image,
          "model {}: images of {}x{} are too small, it needs {}x{} or more", name, options.image_size,
          options.image_size, network.smallest_image, network.smallest_image);
  require(options.layers >= 0, "model {}: the number of layers must be positive, got {}", name, options.layers);
  require(network.has_layers || options.layers == 0, "model {} has a fixed number of layers; {} takes one", name,
          only(&ModelEntry::has_layers));
  require(network.has_layers || !options.shared_weights, "model {} has no shared weights; {} does", name,
          only(&ModelEntry::has_layers));
  require(network.has_batch_norm || network.takes_batch_norm || !options.batch_norm,
          "model {} has no batch norm; {} takes it as an option", name,
          one_of(model_names(&ModelEntry::takes_batch_norm)));
  require(network.has_width || options.width == 1.0, "model {} has a fixed width; {} take a factor", name,
          all_of(model_names(&ModelEntry::has_width)));
  require(options.width > 0.0 && options.width <= kMostWidth, "model {}: width must be above 0 and at most {}, got {}",
          name, kMostWidth, options.width);
  require(options.dropout >= 0.0 && options.dropout < 1.0, "model {}: dropout must be in [0, 1), got {}", name,
          options.dropout);
  require(options.drop_path >= 0.0 && options.drop_path < 1.0, "model {}: drop_path must be in [0, 1), got {}", name,
          options.drop_path);
  require(network.has_drop_path || options.drop_path == 0.0, "model {} has no residual branches to drop; {} do", name,
          all_of(model_names(&ModelEntry::has_drop_path)));

  check_airbench(network, options);
  check_norms(network, options);

  auto model = network.make(options);
  model->set_random_state(std::make_shared<RandomState>(options.seed));
  return model;
}

}  // namespace tandem::layers
