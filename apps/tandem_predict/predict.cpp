// From a file to the likeliest classes.
#include "predict.h"

#include "tandem/autograd/functions/concat.h"
#include "tandem/autograd/functions/softmax.h"
#include "tandem/autograd/functions/topk.h"
#include "tandem/autograd/grad_mode.h"
#include "tandem/core/error.h"
#include "tandem/data/read_image.h"
#include "tandem/train/tensor_hashes.h"
#include "tandem/train/weights.h"

#include <algorithm>
#include <cmath>
#include <span>

namespace tandem::apps {
namespace {

constexpr std::size_t kBatch = 64;  // files at a time

/// u8 [C, H, W] of a file, in the size of the network's images.
Tensor read_image(const std::string& file, const layers::ModelOptions& model) {
  const Tensor image = data::read_image(file, {.channels = static_cast<int>(model.in_channels)});
  return data::resize_image(image, {model.image_size, model.image_size});
}

/// Reads one file for each of `results`, and tells there which cannot be read. u8 [n, C, H, W] of the others.
Tensor read_images(std::span<FileResult> results, const layers::ModelOptions& model) {
  std::vector<Tensor> images;
  for (FileResult& result : results) {
    try {
      images.push_back(read_image(result.file, model));
    } catch (const Error& error) {
      result.error = error.what();
    }
  }
  return images.empty() ? Tensor() : autograd::stack(images, 0);
}

/// Normalised as the training images were.
Tensor input_of(const Tensor& images, const train::NetworkDescription& network) {
  data::ImageDataset set;
  set.name = network.dataset;
  set.images = images;
  set.labels = Tensor::zeros({images.size(0)}, {.dtype = DType::i64});
  set.class_names = network.class_names;
  set.mean = network.mean;
  set.deviation = network.deviation;
  std::vector<std::int64_t> indices;
  for (std::int64_t i = 0; i < set.size(); ++i) indices.push_back(i);
  return set.get_batch(indices, 0, {})[0];
}

}  // namespace

TrainedNetwork load_network(const std::string& path, Device device) {
  TrainedNetwork network;
  const layers::SafetensorsFile file = train::read_hashed(path, train::HashesAre::checked_where_there).file;
  try {
    network.description = train::read_network(file.metadata);
    network.model = layers::make_model(network.description.model);
    network.model->load_state_dict(file.tensors);
  } catch (const layers::IncompatibleStateError& error) {
    fail("{}: does not fit the network that its metadata describes; {}", path, to_string(error.refused()));
  } catch (const Error& error) {
    fail("{}: {}", path, error.what());
  }
  network.model->to(device);
  network.model->eval();
  return network;
}

void predict(const TrainedNetwork& network, const std::vector<std::string>& files, std::int64_t top, Device device,
             train::TestTimeAugmentation augmentation, const std::function<void(const FileResult&)>& tell) {
  const autograd::NoGrad no_grad;
  const layers::ModelOptions& model = network.description.model;
  require(model.in_channels == 1 || model.in_channels == 3,
          "the network takes images of {} channels, and files have 1 or 3", model.in_channels);
  const std::int64_t shown = std::min(top, model.classes);
  const train::ForwardFunction forward = train::over_views(augmentation);
  for (std::size_t begin = 0; begin < files.size(); begin += kBatch) {
    std::vector<FileResult> results;
    for (std::size_t i = begin; i < std::min(begin + kBatch, files.size()); ++i) results.push_back({.file = files[i]});
    const Tensor images = read_images(results, model);
    if (images.defined()) {
      data::Batch batch;
      batch.images = input_of(images, network.description).to(device);
      const Tensor output = train::run_forward(forward, *network.model, batch);
      const auto [values, classes] = autograd::topk(autograd::softmax(output, 1), shown, 1);
      const auto probabilities = values.to_vector<double>();
      const auto numbers = classes.to_vector<std::int64_t>();
      require(std::none_of(probabilities.begin(), probabilities.end(), [](double p) { return std::isnan(p); }),
              "the network's outputs are no numbers: its weights are those of a run that diverged; take others");
      std::size_t at = 0;
      for (FileResult& result : results) {
        if (!result.error.empty()) continue;
        for (std::int64_t k = 0; k < shown; ++k, ++at)
          result.prediction.emplace_back(network.description.class_names[static_cast<std::size_t>(numbers[at])],
                                         probabilities[at]);
      }
    }
    for (const FileResult& result : results) tell(result);
  }
}

}  // namespace tandem::apps
