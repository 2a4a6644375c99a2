// The weights of a model: what its optimizer keeps of them in f32 where it trains in half precision, and their files.
#pragma once

#include "tandem/layers/module.h"
#include "tandem/layers/safetensors.h"
#include "tandem/optim/optimizer.h"

namespace tandem::train {

/// The model's state dict with the optimizer's masters in place of their half parameters: what to save, so that nothing
/// is lost.
NamedTensors full_state_dict(const layers::Module& model, const optim::Optimizer& optimizer);

/// The model's parameters, and the masters as "<name>.master": what replicas have in common.
NamedTensors parameters_and_masters(const layers::Module& model, const optim::Optimizer& optimizer);

/// Fills `model`, a network of the name `name`, from a safetensors file. Throws Error that begins with the path where
/// the file is damaged (by its hashes, too, if it has any), where its metadata names another model, and where its
/// tensors do not fit. Returns the metadata.
layers::Metadata load_weights(layers::Module& model, const std::string& name, const std::string& path);

/// Where weights are at last, if anywhere.
struct SavedWeights {
  std::string path;     ///< empty: nowhere
  std::string problem;  ///< why not at the place that was asked for; empty: they are there
};

/// Writes a safetensors file with a hash of each tensor: the whole file, or what was there stays. Where that
/// fails, as on a full disk, the weights go to a new folder, in the working directory or the system's for temporary
/// files. Throws nothing on account of files.
/// Example:
///     #include "tandem/layers/linear.h"
///     #include "tandem/optim/sgd.h"
///     layers::Initializer initializer(1);
///     layers::Linear model({.in = 256, .out = 10}, initializer);
///     const optim::SGD optimizer(model.parameters(), {.lr = 0.1});
///     const NamedTensors weights = full_state_dict(model, optimizer);
///     const SavedWeights saved = save_weights("model.safetensors", weights, {{"model", "linear"}});
///     load_weights(model, "linear", saved.path);
SavedWeights save_weights(const std::string& path, const NamedTensors& tensors, const layers::Metadata& metadata);

}  // namespace tandem::train
