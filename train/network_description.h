// What a file of weights says of its network, so that images can be classified without the program that trained it.
#pragma once

#include "tandem/data/image_dataset.h"
#include "tandem/layers/models/models.h"
#include "tandem/layers/safetensors.h"

#include <string>
#include <vector>

namespace tandem::train {

/// A network of layers::make_model() and the images that it was trained on.
struct NetworkDescription {
  layers::ModelOptions model;            ///< what its shape depends on: name, channels, size, classes and so on
  std::string dataset;                   ///< "cifar10"
  std::vector<std::string> class_names;  ///< model.classes of them
  std::vector<float> mean, deviation;    ///< per channel, of value / 255: how images were normalised
};

/// Of a network for these images.
NetworkDescription describe_network(const layers::ModelOptions& model, const data::ImageDataset& images);

/// As entries of a safetensors file: "model", "dataset", "image" ("3x32x32"), "layers", "shared_weights", "batch_norm",
/// "width", "activation", "unit_head", "celu_alpha", and "classes", "mean" and "deviation" as lists in JSON.
layers::Metadata to_metadata(const NetworkDescription& network);

/// What to_metadata() was given. Throws Error, which says what is missing or wrong, for other entries. Without
/// "width" and the three behind it these are the defaults of ModelOptions.
/// Example:
///     #include "tandem/data/synthetic.h"
///     const data::ImageDataset images = data::make_synthetic({.count = 8});
///     const layers::Metadata entries = to_metadata(describe_network({.name = "resnet9"}, images));
///     const std::string name = read_network(entries).model.name;  // "resnet9"
NetworkDescription read_network(const layers::Metadata& metadata);

/// What a network of these options computes otherwise than that of to_metadata()'s entries, though weights fit both:
/// "activation silu (here gelu), unit_head true (here false)"; empty where that is nothing, or not said.
std::string other_function(const layers::ModelOptions& model, const layers::Metadata& metadata);

}  // namespace tandem::train
