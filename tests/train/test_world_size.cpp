// Going on with another number of ranks: the same images in each step.
#include "tandem/comm/backends/backend.h"
#include "tandem/core/tensor.h"
#include "tandem/data/image_dataset.h"
#include "tandem/data/loader.h"
#include "tandem/data/sampler.h"
#include "tandem/layers/layers.h"
#include "tandem/optim/sgd.h"
#include "tandem/train/trainer.h"
#include "tests/comm/thread_ranks.h"
#include "tests/support/catch.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

using namespace tandem;
using namespace tandem::test;

namespace {

constexpr std::int64_t kImages = 44, kBatch = 8, kEpochs = 3, kStepsInEpoch = 6;

/// Passes on its input, whose first pixels are the numbers of the images that a rank is given.
class NumberReader : public layers::Module {
 public:
  std::vector<std::int64_t> numbers;

  Tensor forward(const Tensor& input) override {
    const auto pixels = input.to_vector<float>();
    const std::int64_t in_image = input.numel() / input.shape()[0];
    for (std::int64_t i = 0; i < input.shape()[0]; ++i)
      numbers.push_back(std::lround(pixels[static_cast<std::size_t>(i * in_image)]));
    return input;
  }
};

/// Image i is filled with the number i.
std::shared_ptr<const data::ImageDataset> numbered_images() {
  data::ImageDataset images;
  std::vector<std::uint8_t> pixels;
  std::vector<std::int64_t> labels;
  for (std::int64_t i = 0; i < kImages; ++i) {
    pixels.insert(pixels.end(), 4, static_cast<std::uint8_t>(i));
    labels.push_back(i % 3);
  }
  images.images = Tensor::from(pixels, {kImages, 1, 2, 2});
  images.labels = Tensor::from(labels, {kImages});
  images.class_names = {"a", "b", "c"};
  images.mean = {0.0f};
  images.deviation = {1.0f / 255.0f};  // of value / 255: the network sees the numbers
  return std::make_shared<const data::ImageDataset>(std::move(images));
}

using Steps = std::map<std::int64_t, std::vector<std::int64_t>>;  // the sorted numbers of the images of each step

/// Trains on so many ranks from `state` (from the beginning without one) on. Gives the state behind step `left`, if
/// any.
Steps images_of_steps(int ranks, NamedTensors& state, std::int64_t left = 0) {
  Steps steps;
  std::mutex mutex;
  NamedTensors taken;
  run_thread_ranks(ranks, [&](comm::ProcessGroup& group) {
    data::Loader loader(numbered_images(), data::DistributedSampler(kImages, group.size(), group.rank(), true, 5),
                        data::LoaderOptions{.global_batch_size = kBatch});
    layers::Sequential model;
    layers::Initializer initializer(1);
    NumberReader& reader = model.add<NumberReader>();
    model.add<layers::Flatten>();
    model.add<layers::Linear>({.in = 4, .out = 3}, initializer);
    optim::SGD optimizer(model.parameters(), {.lr = 1e-6});
    train::Trainer trainer(model, optimizer, loader, {.group = &group, .epochs = kEpochs, .log_every = 1});
    if (!state.empty()) trainer.load_state_dict(state);
    train::TrainObserver observer;
    observer.progress = [&](const train::Progress&) {
      const NamedTensors now = trainer.state_dict();
      const std::lock_guard lock(mutex);
      std::vector<std::int64_t>& numbers = steps[trainer.steps_done()];
      numbers.insert(numbers.end(), reader.numbers.begin(), reader.numbers.end());
      std::sort(numbers.begin(), numbers.end());
      reader.numbers.clear();
      if (trainer.steps_done() != left || group.rank() != 0) return;
      for (const auto& [name, tensor] : now) taken.emplace_back(name, tensor.detach().clone());
    };
    trainer.run(observer);
  });
  state = taken;
  return steps;
}

}  // namespace

TEST_CASE("a run that goes on with another number of ranks takes the same images in each step", "[threads]") {
  NamedTensors none;
  const Steps whole = images_of_steps(1, none);
  REQUIRE(whole.size() == kEpochs * kStepsInEpoch);
  CHECK(whole.at(1) != whole.at(1 + kStepsInEpoch));  // epochs have orders of their own
  CHECK(whole.at(kStepsInEpoch).size() == kImages % kBatch);
  const auto [before, after] = GENERATE(std::pair(1, 2), std::pair(2, 1));
  CAPTURE(before, after);
  for (const std::int64_t left : {3, 6, 9}) {  // within an epoch, and at its end
    CAPTURE(left);
    NamedTensors state;
    Steps all = images_of_steps(before, state, left);
    CHECK(all == whole);
    std::erase_if(all, [&](const auto& step) { return step.first > left; });
    Steps rest = images_of_steps(after, state);
    CHECK(rest.size() == whole.size() - static_cast<std::size_t>(left));
    all.merge(rest);
    CHECK(all == whole);
  }
}
