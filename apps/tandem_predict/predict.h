// Classifying image files with the weights of a run.
#pragma once

#include "tandem/core/device.h"
#include "tandem/layers/module.h"
#include "tandem/train/network_description.h"
#include "tandem/train/test_time_augmentation.h"

#include <functional>
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

/// What came of a file: the prediction, or why there is none, in one line that names the file.
struct FileResult {
  std::string file;
  Prediction prediction{};
  std::string error{};
};

/// The `top` likeliest classes of each PNG or JPEG file: its middle square, in the size and the colours of the training
/// images, normalised as these were, by the mean outputs for the views of `augmentation`. Calls `tell` for one file
/// after the other, as they are done; a file that cannot be read holds up no other. Throws Error where the network
/// makes no numbers, or takes no images that files have.
void predict(const TrainedNetwork& network, const std::vector<std::string>& files, std::int64_t top, Device device,
             train::TestTimeAugmentation augmentation, const std::function<void(const FileResult&)>& tell);

}  // namespace tandem::apps
