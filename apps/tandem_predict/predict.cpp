// From a file to the likeliest classes.
#include "predict.h"

#include "tandem/autograd/functions/softmax.h"
#include "tandem/autograd/functions/topk.h"
#include "tandem/autograd/grad_mode.h"
#include "tandem/core/error.h"
#include "tandem/core/out.h"
#include "tandem/data/read_image.h"
#include "tandem/train/tensor_hashes.h"
#include "tandem/train/weights.h"

#include <algorithm>
#include <cmath>
#include <span>

namespace tandem::apps {
namespace {

constexpr std::size_t kBatch = 64;  // files at a time

/// u8 [n, C, H, W] of files.
Tensor read_images(std::span<const std::string> files, const layers::ModelOptions& model) {
  require(model.in_channels == 1 || model.in_channels == 3,
          "the network takes images of {} channels, and files have 1 or 3", model.in_channels);
  const std::int64_t side = model.image_size;
  const Tensor images =
      Tensor::empty({static_cast<std::int64_t>(files.size()), model.in_channels, side, side}, {.dtype = DType::u8});
  for (std::size_t i = 0; i < files.size(); ++i) {
    const Tensor image = data::read_image(files[i], {.channels = static_cast<int>(model.in_channels)});
    images.select(0, static_cast<std::int64_t>(i)).copy_from(data::resize_image(image, {side, side}));
  }
  return images;
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

std::vector<Prediction> predict(const TrainedNetwork& network, const std::vector<std::string>& files, std::int64_t top,
                                Device device) {
  const autograd::NoGrad no_grad;
  const std::int64_t shown = std::min(top, network.description.model.classes);
  std::vector<Prediction> predictions;
  for (std::size_t begin = 0; begin < files.size(); begin += kBatch) {
    const auto part = std::span(files).subspan(begin, std::min(kBatch, files.size() - begin));
    const Tensor input = input_of(read_images(part, network.description.model), network.description).to(device);
    const auto [values, classes] = autograd::topk(autograd::softmax((*network.model)(input), 1), shown, 1);
    const auto probability = values.to_vector<double>();
    const auto number = classes.to_vector<std::int64_t>();
    require(std::none_of(probability.begin(), probability.end(), [](double p) { return std::isnan(p); }),
            "the network's outputs are no numbers: its weights are those of a run that diverged; take others");
    for (std::size_t i = 0; i < part.size(); ++i) {
      Prediction& prediction = predictions.emplace_back();
      for (std::size_t k = i * static_cast<std::size_t>(shown); k < (i + 1) * static_cast<std::size_t>(shown); ++k)
        prediction.emplace_back(network.description.class_names[static_cast<std::size_t>(number[k])], probability[k]);
    }
  }
  return predictions;
}

}  // namespace tandem::apps
