// Classifying image files with the weights of a run.
#pragma once

#include "tandem/core/device.h"
#include "tandem/layers/module.h"
#include "tandem/train/network_description.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace tandem::apps {

/// A network in evaluation mode, and what it was trained on.
struct TrainedNetwork {
  train::NetworkDescription description;
  std::unique_ptr<layers::Module> model;
};

/// Reads a file of weights that cifar_train wrote. Throws Error, which begins with the path, where it does not tell its
/// network or its tensors do not fit.
TrainedNetwork load_network(const std::string& path, Device device);

/// Classes with their probabilities, the likeliest first.
using Prediction = std::vector<std::pair<std::string, double>>;

/// The `top` likeliest classes of each PNG or JPEG file: its middle square, in the size and the colours of the training
/// images, normalised as these were. Throws Error, which names the file, where one cannot be read.
std::vector<Prediction> predict(const TrainedNetwork& network, const std::vector<std::string>& files, std::int64_t top,
                                Device device);

}  // namespace tandem::apps
