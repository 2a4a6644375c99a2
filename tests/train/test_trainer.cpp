// The training loop on one rank: what it counts and reports, accumulation, clipping, evaluation. Several ranks are
// tested by whole runs (tests/apps/check_training.py).
#include "tandem/train/trainer.h"

#include "tests/support/catch.h"

#include "tandem/autograd/functions/softmax_cross_entropy.h"
#include "tandem/autograd/variable.h"
#include "tandem/comm/backends/backend.h"
#include "tandem/comm/launch/mpi_environment.h"
#include "tandem/data/synthetic.h"
#include "tandem/layers/models/models.h"
#include "tandem/optim/sgd.h"
#include "tandem/train/evaluation.h"

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

using namespace tandem;

namespace {

std::shared_ptr<const data::ImageDataset> images(std::int64_t count, data::Split split = data::Split::train) {
  return std::make_shared<const data::ImageDataset>(
      data::make_synthetic({.count = count, .channels = 1, .side = 8, .seed = 3, .split = split}));
}

// All that a run on one rank needs.
struct Run {
  comm::ProcessGroup group{comm::make_self_backend()};
  std::shared_ptr<const data::ImageDataset> train_images;
  std::shared_ptr<const data::ImageDataset> test_images = images(13, data::Split::test);
  std::unique_ptr<layers::Module> model =
      layers::make_model({.name = "mnist_cnn", .in_channels = 1, .image_size = 8, .layers = 1, .seed = 5});
  comm::DistributedDataParallel replicas{group, model->named_parameters(), model->named_buffers()};
  optim::SGD optimizer{model->parameters(), {.lr = 0.1, .momentum = 0.9}};
  optim::ConstantSchedule schedule;
  data::Loader train_loader, test_loader;
  optim::GradScaler scaler;

  Run(std::int64_t count, std::int64_t micro_batch)
      : train_images(images(count)),
        train_loader(train_images, {count, 1, 0, true, 1}, {.global_batch_size = micro_batch}),
        test_loader(test_images, {13, 1, 0, false, 1}, {.global_batch_size = 4}) {}

  train::Trainer trainer(const train::TrainerOptions& options) {
    return train::Trainer({*model, optimizer, schedule, group, replicas, train_loader, &test_loader, scaler}, options);
  }

  std::vector<float> weights() const {
    std::vector<float> all;
    for (const Tensor& parameter : model->parameters()) {
      const auto values = parameter.to_vector<float>();
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  }
};

double distance(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += std::pow(static_cast<double>(a[i]) - b[i], 2);
  return std::sqrt(sum);
}

}  // namespace

TEST_CASE("with evaluate_every some epochs and the last one are evaluated, and training is the same") {
  const auto train_for = [](std::int64_t epochs, std::int64_t every) {
    Run run(20, 10);
    std::vector<bool> evaluated;
    auto trainer = run.trainer({.epochs = epochs, .evaluate_every = every});
    const train::EpochRecord last = trainer.run({.epoch = [&](const train::EpochRecord& record) {
      CHECK(std::isnan(record.test_loss) == std::isnan(record.test_accuracy));
      CHECK(record.world_size == 1);
      evaluated.push_back(!std::isnan(record.test_loss));
    }});
    CHECK(std::isfinite(last.test_loss));
    return std::pair(evaluated, run.weights());
  };
  const auto [all, weights] = train_for(5, 1);
  CHECK(all == std::vector<bool>(5, true));
  const auto [some, same_weights] = train_for(5, 2);
  CHECK(some == std::vector<bool>{false, true, false, true, true});
  CHECK(same_weights == weights);
  CHECK(train_for(3, 100).first == std::vector<bool>{false, false, true});

  Run run(20, 10);  // two steps in an epoch
  auto by_steps = run.trainer({.epochs = 10, .steps = 3, .evaluate_every = 10});
  const train::EpochRecord last = by_steps.run({});
  CHECK(last.epoch == 2);
  CHECK(std::isfinite(last.test_loss));
}

TEST_CASE("an epoch reports each step, and counts each image once") {
  Run run(22, 4);
  auto trainer = run.trainer({.epochs = 2, .log_every = 2});
  CHECK(trainer.steps_per_epoch() == 6);
  std::vector<std::int64_t> images_done, steps_logged;
  std::vector<train::EpochRecord> epochs;
  int first_steps = 0;
  train::TrainObserver observer;
  observer.first_step = [&] { ++first_steps; };
  observer.progress = [&](const train::Progress& p) { images_done.push_back(p.images); };
  observer.step = [&](const train::StepRecord& s) { steps_logged.push_back(s.step); };
  observer.epoch = [&](const train::EpochRecord& e) { epochs.push_back(e); };
  const auto last = trainer.run(observer);
  CHECK(first_steps == 1);
  CHECK(images_done == std::vector<std::int64_t>{4, 8, 12, 16, 20, 22, 4, 8, 12, 16, 20, 22});
  CHECK(steps_logged == std::vector<std::int64_t>{2, 4, 6, 8, 10, 12});
  REQUIRE(epochs.size() == 2);
  CHECK(last.epoch == 2);
  CHECK(last.backend == "self");
  CHECK(last.world_size == 1);
  CHECK(last.lr == 0.1);
  CHECK(std::isfinite(last.test_loss));
  // Accuracies are whole numbers of images.
  CHECK(std::abs(std::remainder(last.train_accuracy * 22 / 100, 1.0)) < 1e-9);
  CHECK(std::abs(std::remainder(last.test_accuracy * 13 / 100, 1.0)) < 1e-9);
}

TEST_CASE("training learns") {
  Run run(200, 20);
  const auto before = train::evaluate(*run.model, run.train_loader, run.group);
  auto trainer = run.trainer({.epochs = 20});
  trainer.run({});
  const auto after = train::evaluate(*run.model, run.train_loader, run.group);
  CHECK(after.count == 200);
  CHECK(after.loss() < 0.7 * before.loss());
  CHECK(after.accuracy() > before.accuracy() + 20.0);
}

TEST_CASE("micro-batches add up to the gradient of the whole batch, also in a smaller last step") {
  const auto trained = [](std::int64_t micro_batch, std::int64_t accumulation) {
    Run run(31, micro_batch);  // a last step of 7
    auto trainer = run.trainer({.epochs = 2, .accumulation = accumulation});
    REQUIRE(trainer.steps_per_epoch() == 3);
    trainer.run({});
    return run.weights();
  };
  const auto whole = trained(12, 1);
  CHECK(distance(whole, Run(31, 12).weights()) > 1e-2);
  // Sums of 12 products in another order: a few hundred roundings of 2^-24 over 6 steps with momentum.
  CHECK(distance(whole, trained(6, 2)) < 1e-4);
  CHECK(distance(whole, trained(3, 4)) < 1e-4);
  CHECK(distance(whole, trained(1, 12)) < 1e-4);
}

TEST_CASE("a clipped step is as long as the limit times the rate") {
  Run run(8, 8);
  const auto before = run.weights();
  auto trainer = run.trainer({.clip_norm = 1e-3});
  trainer.run({});
  CHECK(std::abs(distance(before, run.weights()) - 1e-4) < 1e-6);
}

TEST_CASE("without epochs the model is evaluated and left alone") {
  Run run(8, 8);
  const auto before = run.weights();
  const auto record = run.trainer({.epochs = 0}).run({});
  CHECK(run.weights() == before);
  CHECK(record.epoch == 0);
  CHECK(std::isnan(record.train_loss));
  CHECK(std::isfinite(record.test_loss));
}

TEST_CASE("training stops when the loss is not a number any more") {
  Run run(8, 8);
  for (const Tensor& parameter : run.model->parameters()) parameter.detach().fill(std::nan(""));
  const auto record = run.trainer({.epochs = 5}).run({});
  CHECK(record.epoch == 1);
  CHECK(std::isnan(record.train_loss));
}

TEST_CASE("evaluation leaves the mode of the model alone") {
  Run run(8, 8);
  run.model->train(true);
  train::evaluate(*run.model, run.test_loader, run.group);
  CHECK(run.model->training());
  run.model->eval();
  train::evaluate(*run.model, run.test_loader, run.group);
  CHECK_FALSE(run.model->training());
}

TEST_CASE("evaluation and training leave frozen layers as they are") {
  Run run(8, 8);
  layers::Module& frozen = *run.model->named_modules()[2].second;
  frozen.eval();
  train::evaluate(*run.model, run.test_loader, run.group);
  CHECK(run.model->training());
  CHECK_FALSE(frozen.training());
  run.trainer({.epochs = 2}).run({});
  CHECK_FALSE(frozen.training());
  // Also where the forward pass throws.
  data::Loader others(
      std::make_shared<const data::ImageDataset>(data::make_synthetic({.count = 3, .channels = 3, .side = 8})),
      {3, 1, 0, false, 1}, {.global_batch_size = 4});
  CHECK_THROWS_AS(train::evaluate(*run.model, others, run.group), Error);
  CHECK(run.model->training());
  CHECK_FALSE(frozen.training());
}

TEST_CASE("a step is the mean over the images of the loader's batch") {
  Run trained(16, 10), by_hand(16, 10);
  trained.trainer({}).run({});
  by_hand.model->set_random_state(std::make_shared<layers::RandomState>(0));
  by_hand.train_loader.start(0);
  while (const auto batch = by_hand.train_loader.next()) {
    by_hand.optimizer.zero_grad();
    autograd::backward(autograd::softmax_cross_entropy((*by_hand.model)(batch->images), batch->labels));
    by_hand.optimizer.step();
  }
  CHECK(distance(trained.weights(), by_hand.weights()) < 1e-5);  // a few roundings of 2^-24
}

TEST_CASE("options that make no sense are refused") {
  Run run(22, 4);
  CHECK_THROWS_AS(run.trainer({.accumulation = 0}), Error);
  CHECK_THROWS_AS(run.trainer({.epochs = -1}), Error);
}

TEST_CASE("a step may be told to have more micro-batches than there are") {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  Run some(22, 4), most(22, 4);
  train::Trainer few = some.trainer({.accumulation = 6}), many = most.trainer({.accumulation = kMost});
  CHECK(few.steps_per_epoch() == 1);
  CHECK(many.steps_per_epoch() == 1);
  CHECK(many.run_epoch(1, {}).train_loss == few.run_epoch(1, {}).train_loss);
}
