// A run of a few milliseconds, for tests of checkpoints.
#pragma once

#include "tandem/data/loader.h"
#include "tandem/data/synthetic.h"
#include "tandem/layers/layers.h"
#include "tandem/optim/sgd.h"
#include "tandem/train/checkpoint/checkpointing.h"
#include "tandem/train/trainer.h"

#include <memory>
#include <vector>

namespace tandem::test {

/// A linear classifier of 20 images in batches of 8: 3 steps an epoch.
struct SmallRun {
  std::shared_ptr<const data::ImageDataset> images = std::make_shared<const data::ImageDataset>(
      data::make_synthetic({.count = 20, .channels = 1, .side = 8, .seed = 3}));
  layers::Sequential model;
  std::unique_ptr<optim::SGD> optimizer;
  std::unique_ptr<data::Loader> loader;
  std::unique_ptr<train::Trainer> trainer;

  explicit SmallRun(comm::ProcessGroup& group, std::int64_t epochs = 4, std::uint64_t seed = 1) {
    loader = std::make_unique<data::Loader>(
        images,
        data::LoaderOptions{.global_batch_size = 8, .seed = 1, .shuffle = true, .share = {group.size(), group.rank()}});
    layers::Initializer initializer(seed);
    model.add<layers::Flatten>();
    model.add<layers::Linear>({.in = 64, .out = 10}, initializer);
    optimizer = std::make_unique<optim::SGD>(model.parameters(), optim::SGDOptions{.lr = 0.1, .momentum = 0.9});
    trainer = std::make_unique<train::Trainer>(model, *optimizer, *loader,
                                               train::TrainerOptions{.group = &group, .epochs = epochs});
  }

  std::vector<float> weights() const { return model.parameters().front().to_vector<float>(); }
};

/// Waits behind each step for what is being written, so that none of a run of such short steps is put off.
inline train::TrainObserver waiting_for(train::Checkpointing& checkpoints) {
  train::TrainObserver observer;
  observer.progress = [&checkpoints](const train::Progress&) { checkpoints.wait(); };
  return observer;
}

}  // namespace tandem::test
