// Runs of so many steps, and where their time goes.
#include "tandem/autograd/functions.h"
#include "tandem/comm/backends/backend.h"
#include "tandem/data/example_random.h"
#include "tandem/data/synthetic.h"
#include "tandem/layers/layers.h"
#include "tandem/optim/sgd.h"
#include "tandem/train/trainer.h"
#include "tests/comm/thread_ranks.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"

#include <chrono>
#include <cmath>
#include <thread>

using namespace tandem;
using namespace tandem::test;
using namespace tandem::train;

namespace {

constexpr std::int64_t kStepsInEpoch = 3;

struct Run {
  layers::Sequential model;
  std::unique_ptr<optim::SGD> optimizer;
  data::Loader loader, test;

  explicit Run(const comm::ProcessGroup& group, data::Transform transform = {})
      : Run(group, {.global_batch_size = 8, .threads = 0, .transform = std::move(transform)}) {}

  Run(const comm::ProcessGroup& group, const data::LoaderOptions& options)
      : loader(images(20, 3), {20, group.size(), group.rank(), true, 1}, options),
        test(images(9, 5), {9, group.size(), group.rank(), false, 1}, {.global_batch_size = 4}) {
    layers::Initializer initializer(1);
    model.add<layers::Flatten>();
    model.add<layers::Linear>({.in = 64, .out = 10}, initializer);
    optimizer = std::make_unique<optim::SGD>(model.parameters(), optim::SGDOptions{.lr = 0.1, .momentum = 0.9});
  }

  static std::shared_ptr<const data::ImageDataset> images(std::int64_t count, std::uint64_t seed) {
    return std::make_shared<const data::ImageDataset>(
        data::make_synthetic({.count = count, .channels = 1, .side = 8, .seed = seed}));
  }

  std::vector<float> weights() const { return model.parameters().front().to_vector<float>(); }
};

void sleep_for(int milliseconds) { std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds)); }

}  // namespace

TEST_CASE("a run of so many steps ends behind them, and evaluates the part of an epoch") {
  comm::ProcessGroup group(comm::make_self_backend());
  const std::int64_t steps = GENERATE(1, 2, 3, 4, 6, 8);
  CAPTURE(steps);
  Run run(group), whole(group);
  Trainer trainer(run.model, *run.optimizer, run.loader, {.test = &run.test, .epochs = 0, .steps = steps});
  std::vector<EpochRecord> epochs;
  std::vector<Progress> progress;
  const EpochRecord last = trainer.run({.progress = [&](const Progress& p) { progress.push_back(p); },
                                        .epoch = [&](const EpochRecord& epoch) { epochs.push_back(epoch); }});
  const std::int64_t expected_epochs = (steps + kStepsInEpoch - 1) / kStepsInEpoch;
  CHECK(trainer.steps_done() == steps);
  CHECK(static_cast<std::int64_t>(epochs.size()) == expected_epochs);
  CHECK(last.epoch == expected_epochs);
  CHECK_FALSE(last.stopped);
  CHECK(std::isfinite(last.test_loss));
  CHECK(progress.back().step == progress.back().steps);
  CHECK(progress.back().epochs == expected_epochs);
  // The same steps as those of whole epochs.
  Trainer by_epochs(whole.model, *whole.optimizer, whole.loader, {.epochs = 9});
  by_epochs.run({.stop = [&] { return by_epochs.steps_done() == steps; }});
  CHECK(run.weights() == whole.weights());
}

TEST_CASE("a longer run goes on where one of so many steps ended") {
  comm::ProcessGroup group(comm::make_self_backend());
  for (std::int64_t first = 1; first <= 7; ++first) {
    CAPTURE(first);
    Run run(group), other(group), whole(group);
    Trainer shorter(run.model, *run.optimizer, run.loader, {.test = &run.test, .steps = first});
    const EpochRecord end = shorter.run({});
    Trainer longer(other.model, *other.optimizer, other.loader, {.test = &other.test, .steps = 8});
    longer.load_state_dict(shorter.state_dict());
    const EpochRecord last = longer.run({});
    Trainer at_once(whole.model, *whole.optimizer, whole.loader, {.test = &whole.test, .steps = 8});
    const EpochRecord expected = at_once.run({});
    CHECK(longer.steps_done() == 8);
    CHECK(other.weights() == whole.weights());
    CHECK(last.train_loss == expected.train_loss);
    CHECK(last.test_loss == expected.test_loss);
    CHECK(last.epoch == expected.epoch);
    // One that has its steps only evaluates.
    Run again(group);
    Trainer ended(again.model, *again.optimizer, again.loader, {.test = &again.test, .steps = first});
    ended.load_state_dict(shorter.state_dict());
    const EpochRecord evaluated = ended.run({});
    CHECK(ended.steps_done() == first);
    CHECK(evaluated.epoch == end.epoch);
    CHECK(evaluated.test_loss == end.test_loss);
    CHECK(std::isnan(evaluated.train_loss));
  }
}

TEST_CASE("a part of an epoch is rounded up to a whole step, and roundings make none") {
  CHECK(steps_in(9.9, 48) == 476);
  CHECK(steps_in(7.59, 32) == 243);
  for (std::int64_t tenths = 0; tenths <= 300; ++tenths)
    for (std::int64_t in_epoch = 0; in_epoch <= 200; ++in_epoch)
      REQUIRE(steps_in(static_cast<double>(tenths) / 10.0, in_epoch) == (tenths * in_epoch + 9) / 10);
  for (std::int64_t hundredths = 0; hundredths <= 2000; hundredths += 7)
    for (std::int64_t in_epoch = 0; in_epoch <= 400; in_epoch += 3)
      REQUIRE(steps_in(static_cast<double>(hundredths) / 100.0, in_epoch) == (hundredths * in_epoch + 99) / 100);
  CHECK(steps_in(1e-12, 48) == 1);
  CHECK(steps_in(1.0 + 1e-12, 48) == 49);
  CHECK(steps_in(1e6, 1000000000) == 1000000000000000);
  CHECK(error_of([] { steps_in(-0.5, 48); }) ==
        "trainer: -0.5 epochs of 48 steps are no number of steps: give 0 epochs or more");
  CHECK_THROWS_AS(steps_in(std::nan(""), 48), Error);
  CHECK_THROWS_AS(steps_in(INFINITY, 48), Error);
  CHECK_THROWS_AS(steps_in(1e300, 48), Error);
}

TEST_CASE(
    "a run of full batches that ends within an epoch is the same when it is left and gone on with, on 1 and 2 ranks") {
  // Of 20 images two batches of 8: two and a half epochs are five steps.
  const optim::WarmupSchedule schedule(2, 0.25, std::make_unique<optim::LinearSchedule>(3, 0.1));
  const double factors[] = {0.25, 0.625, 1.0, 0.7, 0.4};
  std::vector<float> of_one_rank;
  for (const int ranks : {1, 2}) {
    CAPTURE(ranks);
    run_thread_ranks(ranks, [&](comm::ProcessGroup& group) {
      const auto options_of = [&](Run& run) {
        return TrainerOptions{.test = &run.test,
                              .schedule = &schedule,
                              .group = &group,
                              .steps = steps_in(2.5, steps_per_epoch(run.loader, 1))};
      };
      const data::LoaderOptions full{.global_batch_size = 8,
                                     .drop_last = true,
                                     .augment = data::parse_augment("flip-alternating,cutout-inside=3"),
                                     .seed = 1};
      Run whole(group, full);
      Trainer trainer(whole.model, *whole.optimizer, whole.loader, options_of(whole));
      std::vector<Progress> progress;
      std::vector<EpochRecord> epochs;
      std::vector<NamedTensors> states;
      std::vector<double> rates;
      const EpochRecord last = trainer.run({.progress =
                                                [&](const Progress& p) {
                                                  progress.push_back(p);
                                                  rates.push_back(whole.optimizer->lr());
                                                  states.push_back(trainer.state_dict());
                                                  for (auto& [name, tensor] : states.back()) tensor = tensor.clone();
                                                },
                                            .epoch = [&](const EpochRecord& epoch) { epochs.push_back(epoch); }});
      const bool is_first = group.rank() == 0;  // threads other than the test's own must not check
      const auto check_all = [&](bool condition) {
        if (is_first) CHECK(condition);
      };
      check_all(trainer.steps_done() == 5 && trainer.epochs_done() == 2 && epochs.size() == 3 && progress.size() == 5);
      check_all(epochs[0].steps == 2 && epochs[1].steps == 2 && last.steps == 1 && last.epoch == 3);
      check_all(progress[1].images == 16 && progress[4].images == 8);
      check_all(progress[4].step == 1 && progress[4].steps == 1 && progress[4].epochs == 3 && progress[3].steps == 2);
      for (std::size_t t = 0; t < 5; ++t) check_all(std::abs(rates[t] - 0.1 * factors[t]) < 1e-15);
      for (std::size_t left = 0; left < 5; ++left) {
        Run other(group, full);
        Trainer rest(other.model, *other.optimizer, other.loader, options_of(other));
        rest.load_state_dict(states[left]);
        const EpochRecord again = rest.run({});
        check_all(rest.steps_done() == 5 && other.weights() == whole.weights());
        check_all(again.test_loss == last.test_loss && again.epoch == 3);
        check_all(again.train_loss == last.train_loss);
        check_all(again.best && again.best->epoch == last.best->epoch && again.best->value == last.best->value);
      }
      if (is_first && ranks == 1) of_one_rank = whole.weights();
      for (std::size_t i = 0; is_first && i < of_one_rank.size(); ++i)
        CHECK(std::abs(whole.weights()[i] - of_one_rank[i]) < 1e-6);  // sums of 8 images in another order
    });
  }
}

TEST_CASE("fit() counts epochs where run() counted steps") {
  comm::ProcessGroup group(comm::make_self_backend());
  Run run(group);
  Trainer trainer(run.model, *run.optimizer, run.loader, {.steps = 4});
  trainer.run({});
  trainer.fit(2);  // the rest of the second epoch, and the third
  CHECK(trainer.steps_done() == 3 * kStepsInEpoch);
  CHECK(trainer.epochs_done() == 3);
  CHECK_THAT(error_of([&] { Trainer(run.model, *run.optimizer, run.loader, {.steps = -1}); }),
             ContainsText("trainer: steps -1 must be 0 (by epochs) or more"));
}

TEST_CASE("an epoch's time is cut into its phases") {
  comm::ProcessGroup group(comm::make_self_backend());
  Run run(group, [](data::Example example, data::ExampleRandom&) {
    sleep_for(1);  // 20 times
    return example;
  });
  const LossFunction slow = [](const Tensor& output, const Tensor&) {
    sleep_for(10);  // 3 times in training, and 3 in evaluation
    return autograd::mse_loss(output, Tensor::zeros(output.shape()));
  };
  Trainer trainer(run.model, *run.optimizer, run.loader, {.test = &run.test, .loss = slow});
  std::vector<EpochRecord> epochs;
  TrainObserver observer;
  observer.progress = [](const Progress&) { sleep_for(7); };
  observer.epoch = [&](const EpochRecord& epoch) {
    epochs.push_back(epoch);
    sleep_for(40);
  };
  const auto start = std::chrono::steady_clock::now();
  trainer.fit(2, observer);
  const double all = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  double total = 0.0;
  for (const EpochRecord& epoch : epochs) {
    REQUIRE(epoch.time);
    CHECK(epoch.time->data > 0.020);
    CHECK(epoch.time->forward > 0.030);
    CHECK(epoch.time->evaluation > 0.030);
    CHECK(epoch.time->writing > 0.021);
    CHECK(epoch.time->backward > 0.0);
    CHECK(epoch.time->optimizer > 0.0);
    CHECK(epoch.time->communication > 0.0);
    total += epoch.time->total();
  }
  CHECK(epochs[1].time->writing > 0.061);  // the record of the first epoch is written in the second
  CHECK(total <= all);
  CHECK(total > all - 0.045 - 0.02);  // all but the last record's writing, and what a busy machine takes
  CHECK_FALSE(epochs[0].memory.empty());
}
