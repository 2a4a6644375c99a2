// Epochs whose last batch cannot be shared evenly: refused by numbers where a rank's share is too small for the
// network, left out, or trained on.
#include "tandem/autograd/variable.h"
#include "tandem/data/sampler.h"
#include "tandem/data/synthetic.h"
#include "tandem/layers/layers.h"
#include "tandem/optim/sgd.h"
#include "tandem/train/trainer.h"
#include "tests/comm/mpi/mpi_test.h"
#include "tests/support/catch.h"

#include <cmath>

using namespace tandem;
using namespace tandem::test;

namespace {

std::shared_ptr<const data::ImageDataset> images(std::int64_t count) {
  return std::make_shared<const data::ImageDataset>(data::make_synthetic({.count = count, .channels = 1, .side = 8}));
}

std::unique_ptr<layers::Sequential> make_network(bool batch_norm) {
  layers::Initializer initializer(3);
  auto network = std::make_unique<layers::Sequential>();
  network->add<layers::Flatten>();
  network->add<layers::Linear>({.in = 64, .out = 16}, initializer);
  if (batch_norm) network->add<layers::BatchNorm2d>({.channels = 16});  // over [N, C]
  network->add<layers::Dropout>(0.1);
  network->add<layers::Linear>({.in = 16, .out = 10}, initializer);
  return network;
}

/// All that a run needs.
struct Run {
  comm::ProcessGroup& group;
  std::unique_ptr<layers::Sequential> network;
  optim::SGD sgd{network->parameters(), {.lr = 0.1}};
  comm::DistributedDataParallel replicas{group, network->named_parameters(), network->named_buffers()};
  optim::ConstantSchedule schedule;
  optim::GradScaler scaler;
  data::Loader train_loader, test_loader;

  Run(comm::ProcessGroup& ranks, bool batch_norm, std::int64_t count, const data::LoaderOptions& options)
      : group(ranks),
        network(make_network(batch_norm)),
        train_loader(images(count), sampler(count, true), options),
        test_loader(images(5), sampler(5, false), {.global_batch_size = 4}) {}

  train::Trainer trainer(std::int64_t accumulation = 1) {
    return train::Trainer({*network, sgd, schedule, group, replicas, train_loader, &test_loader, scaler},
                          {.accumulation = accumulation, .check_replicas = true});
  }

  /// Trains an epoch; how many images that took.
  std::int64_t train_epoch() {
    std::int64_t done = 0;
    train::TrainObserver observer;
    observer.progress = [&](const train::Progress& progress) { done = progress.images; };
    CHECK(std::isfinite(trainer().run(observer).train_loss));
    return done;
  }

 private:
  data::DistributedSampler sampler(std::int64_t count, bool shuffle) const {
    return {count, group.size(), group.rank(), shuffle, 1};
  }
};

std::vector<std::vector<float>> contents(layers::Module& network) {
  std::vector<std::vector<float>> result;
  for (const auto& [name, tensor] : network.state_dict()) result.push_back(tensor.to_vector<float>());
  return result;
}

}  // namespace

TEST_CASE("a last batch that leaves some rank too few images for batch norm is refused when the trainer is made") {
  const auto group = each_group();
  const int ranks = group->size();
  Run run(*group, true, 19, {.global_batch_size = 16});  // a last batch of 3: 3, or 2 and 1, or 1, 1, 1 and 0
  if (ranks == 1) {
    CHECK(run.train_epoch() == 19);
    return;
  }
  const auto before = contents(*run.network);
  const std::string text = agreed_error_of([&] { run.trainer(); });
  CHECK_THAT(text, ContainsText(fmt::format("19 examples in batches of 16 on {} ranks", ranks)));
  CHECK_THAT(text, ContainsText("leave a rank 1 example of a batch of 3"));
  CHECK_THAT(text, ContainsText("batch_norm: training needs more than one value per channel"));
  CHECK_THAT(text, ContainsText("drop_last"));
  CHECK(contents(*run.network) == before);
  CHECK(run.network->training());
}

TEST_CASE("what is refused is what cannot work: a share of one image, in whatever batch it is") {
  const auto group = each_group();
  const int ranks = group->size();
  const auto refused = [&](std::int64_t count, std::int64_t batch, bool drop_last) {
    Run run(*group, true, count, {.global_batch_size = batch, .drop_last = drop_last});
    return agreed_error_of([&] { run.trainer(); }) != "no AgreedError";
  };
  CHECK(refused(22, 16, false) == (ranks == 4));  // 6; 3, 3; 2, 2, 1, 1
  CHECK(refused(17, 16, false));                  // 1 image is one rank's
  CHECK_FALSE(refused(17, 16, true));
  CHECK_FALSE(refused(24, 16, false));
  CHECK_FALSE(refused(32, 16, false));
  CHECK(refused(8 * ranks, ranks, false));  // each batch has one image for each rank
  CHECK(refused(8 * ranks, ranks, true));
}

TEST_CASE("drop_last leaves the small batch out, on any number of ranks") {
  const auto group = each_group();
  Run run(*group, true, 19, {.global_batch_size = 16, .drop_last = true});
  CHECK(run.trainer().steps_per_epoch() == 1);
  CHECK(run.train_epoch() == 16);
  CHECK(run.sgd.steps() == 1);
}

TEST_CASE("a network that can learn from one image trains on uneven batches, also with ranks that get none") {
  const auto group = each_group();
  for (const std::int64_t count : {17, 18, 19}) {
    Run run(*group, false, count, {.global_batch_size = 16});
    CHECK(run.train_epoch() == count);
  }
}
