// A network's description from and to the entries of a file.
#include "tandem/train/network_description.h"

#include "tandem/core/error.h"
#include "tandem/core/number_text.h"

#include <nlohmann/json.hpp>

#include <cmath>

namespace tandem::train {

namespace {

using Json = nlohmann::json;

const std::string& entry(const layers::Metadata& metadata, const std::string& name) {
  const auto found = metadata.find(name);
  require(found != metadata.end(),
          "says nothing of '{}': it was not written by tandem train (cifar_train), or by an older one; take "
          "final.safetensors of a run",
          name);
  return found->second;
}

template <typename T>
T number(const layers::Metadata& metadata, const std::string& name) {
  const std::string& text = entry(metadata, name);
  const auto value = parse_number<T>(text);
  require(value.has_value(), "'{}' is '{}', which is no number", name, text);
  return *value;
}

bool truth(const layers::Metadata& metadata, const std::string& name) {
  const std::string& text = entry(metadata, name);
  require(text == "true" || text == "false", "'{}' is '{}', neither true nor false", name, text);
  return text == "true";
}

/// `count` values of one type.
template <typename T>
std::vector<T> list(const layers::Metadata& metadata, const std::string& name, std::int64_t count) {
  const Json json = Json::parse(entry(metadata, name), nullptr, false);
  bool fits = json.is_array() && static_cast<std::int64_t>(json.size()) == count;
  if (fits) {
    for (const Json& value : json)
      fits = fits && (std::is_same_v<T, std::string> ? value.is_string() : value.is_number());
  }
  require(fits, "'{}' is no list of {} {}", name, count, std::is_same_v<T, std::string> ? "texts" : "numbers");
  return json.get<std::vector<T>>();
}

/// "3x32x32"
void read_image_shape(const std::string& text, layers::ModelOptions& model) {
  const std::size_t first = text.find('x'), second = text.find('x', first + 1);
  require(first != text.npos && second != text.npos, "'image' is '{}', not a shape such as 3x32x32", text);
  const auto channels = parse_number<std::int64_t>(text.substr(0, first));
  const auto height = parse_number<std::int64_t>(text.substr(first + 1, second - first - 1));
  const auto width = parse_number<std::int64_t>(text.substr(second + 1));
  constexpr std::int64_t kMost = 1 << 14;
  require(channels && height && width && height == width && *channels >= 1 && *channels <= kMost && *height >= 1 &&
              *height <= kMost,
          "'image' is '{}', not a square shape such as 3x32x32", text);
  model.in_channels = *channels;
  model.image_size = *height;
}

}  // namespace

NetworkDescription describe_network(const layers::ModelOptions& model, const data::ImageDataset& images) {
  NetworkDescription network{model, images.name, images.class_names, images.mean, images.deviation};
  network.model.in_channels = images.channels();
  network.model.image_size = images.height();
  network.model.classes = images.classes();
  return network;
}

layers::Metadata to_metadata(const NetworkDescription& network) {
  const layers::ModelOptions& model = network.model;
  // Names of classes may come from a user's files, and need not be UTF-8.
  const auto text_of = [](const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); };
  return {{"model", model.name},
          {"dataset", network.dataset},
          {"image", fmt::format("{}x{}x{}", model.in_channels, model.image_size, model.image_size)},
          {"layers", std::to_string(model.layers)},
          {"shared_weights", model.shared_weights ? "true" : "false"},
          {"batch_norm", model.batch_norm ? "true" : "false"},
          {"width", fmt::format("{}", model.width)},
          {"activation", model.activation},
          {"unit_head", model.unit_head ? "true" : "false"},
          {"celu_alpha", fmt::format("{}", model.celu_alpha)},
          {"classes", text_of(network.class_names)},
          {"mean", text_of(network.mean)},
          {"deviation", text_of(network.deviation)}};
}

std::string other_function(const layers::ModelOptions& model, const layers::Metadata& metadata) {
  std::string differences;
  NetworkDescription network;
  network.model = model;
  const layers::Metadata own = to_metadata(network);
  for (const char* const name : {"activation", "unit_head", "celu_alpha"}) {
    const auto found = metadata.find(name);
    if (found == metadata.end() || found->second == own.at(name)) continue;
    differences += fmt::format("{}{} {} (here {})", differences.empty() ? "" : ", ", name, found->second, own.at(name));
  }
  return differences;
}

NetworkDescription read_network(const layers::Metadata& metadata) {
  NetworkDescription network;
  network.model.name = entry(metadata, "model");
  network.dataset = entry(metadata, "dataset");
  read_image_shape(entry(metadata, "image"), network.model);
  network.model.layers = number<std::int64_t>(metadata, "layers");
  network.model.shared_weights = truth(metadata, "shared_weights");
  network.model.batch_norm = truth(metadata, "batch_norm");
  // What older programs did not write is as they had it.
  if (metadata.contains("width")) network.model.width = number<double>(metadata, "width");
  if (metadata.contains("activation")) network.model.activation = entry(metadata, "activation");
  if (metadata.contains("unit_head")) network.model.unit_head = truth(metadata, "unit_head");
  if (metadata.contains("celu_alpha")) network.model.celu_alpha = number<double>(metadata, "celu_alpha");
  const Json classes = Json::parse(entry(metadata, "classes"), nullptr, false);
  require(classes.is_array() && !classes.empty(), "'classes' is no list of names");
  network.model.classes = static_cast<std::int64_t>(classes.size());
  network.class_names = list<std::string>(metadata, "classes", network.model.classes);
  network.mean = list<float>(metadata, "mean", network.model.in_channels);
  network.deviation = list<float>(metadata, "deviation", network.model.in_channels);
  for (std::size_t i = 0; i < network.mean.size(); ++i)
    require(std::isfinite(network.mean[i]) && std::isfinite(network.deviation[i]) && network.deviation[i] > 0.0f,
            "'mean' and 'deviation' are {} and {} for channel {}: they must be finite, the latter above 0",
            network.mean[i], network.deviation[i], i);
  return network;
}

}  // namespace tandem::train
