// Whole trainings whose ranks are threads of one process: nothing that a process shares may get between them.
#include "tandem/data/sampler.h"
#include "tandem/data/synthetic.h"
#include "tandem/layers/models/models.h"
#include "tandem/optim/adam.h"
#include "tandem/train/trainer.h"
#include "tests/comm/thread_ranks.h"
#include "tests/support/catch.h"

#include <array>

using namespace tandem;
using namespace tandem::test;

namespace {

constexpr int kRanks = 3;
using Weights = std::vector<std::vector<float>>;

std::shared_ptr<const data::ImageDataset> images(std::int64_t count, data::Split split) {
  return std::make_shared<const data::ImageDataset>(
      data::make_synthetic({.count = count, .channels = 1, .side = 8, .seed = 3, .split = split}));
}

/// The weights after two epochs with prefetching loaders and buckets that are exchanged during backward.
Weights train_replica(comm::ProcessGroup& group, const std::shared_ptr<const data::ImageDataset>& train_images,
                      const std::shared_ptr<const data::ImageDataset>& test_images) {
  const auto model =
      layers::make_model({.name = "mnist_cnn", .in_channels = 1, .image_size = 8, .layers = 1, .seed = 5});
  optim::Adam optimizer(model->parameters(), {.lr = 0.01});
  comm::DistributedDataParallel replicas(group, model->named_parameters(), model->named_buffers(),
                                         {.first_bucket_bytes = 4096, .bucket_bytes = 65536});
  const auto sampler = [&](const data::ImageDataset& set, bool shuffle) {
    return data::DistributedSampler(set.size(), group.size(), group.rank(), shuffle, 1);
  };
  data::Loader train_loader(train_images, sampler(*train_images, true), {.global_batch_size = 12, .threads = 2});
  data::Loader test_loader(test_images, sampler(*test_images, false), {.global_batch_size = 12, .threads = 1});
  const optim::ConstantSchedule schedule;
  optim::GradScaler scaler;
  train::Trainer trainer({*model, optimizer, schedule, group, replicas, train_loader, &test_loader, scaler},
                         {.epochs = 2, .check_replicas = true});
  trainer.run({});
  Weights weights;
  for (const Tensor& parameter : model->parameters()) weights.push_back(parameter.to_vector<float>());
  return weights;
}

std::array<Weights, kRanks> train_all() {
  const auto train_images = images(36, data::Split::train), test_images = images(12, data::Split::test);
  std::array<Weights, kRanks> result;
  run_thread_ranks(kRanks, [&](comm::ProcessGroup& group) {
    result[static_cast<std::size_t>(group.rank())] = train_replica(group, train_images, test_images);
  });
  return result;
}

}  // namespace

TEST_CASE("ranks that are threads train equal replicas, the same in every run", "[threads]") {
  const auto first = train_all();
  REQUIRE_FALSE(first[0].empty());
  for (const Weights& weights : first) CHECK(weights == first[0]);
  CHECK(train_all() == first);
}

TEST_CASE("an error of one rank that is a thread comes through", "[threads]") {
  CHECK_THROWS_WITH(run_thread_ranks(2, [](comm::ProcessGroup& group) { require(group.rank() == 0, "rank 1 fails"); }),
                    ContainsText("rank 1 fails"));
}
