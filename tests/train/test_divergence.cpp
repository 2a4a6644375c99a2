// Runs whose numbers are none any more, and runs that are stopped in an evaluation.
#include "tandem/comm/backends/backend.h"
#include "tandem/comm/process_group.h"
#include "tandem/data/loader.h"
#include "tandem/layers/module.h"
#include "tandem/train/records.h"
#include "tests/comm/thread_ranks.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"
#include "tests/train/spoiled_training.h"

#include <array>

using namespace tandem;
using namespace tandem::test;
using namespace tandem::train;

namespace {

/// NaN from the forward pass of step `first` on, on rank `rank`.
void spoil_loss(SpoiledTraining& training, std::int64_t first, int rank) {
  training.model.register_forward_hook([&training, first, rank](layers::Module&, const Tensor&, const Tensor& output) {
    const bool spoils = training.group.rank() == rank && training.trainer->steps_done() + 1 >= first;
    return spoils ? autograd::scale(output, std::nan("")) : Tensor();
  });
}

}  // namespace

TEST_CASE("a loss that is not finite ends training behind its step, which is named", "[threads]") {
  const int ranks = GENERATE(1, 2);
  const std::int64_t step = GENERATE(1, 2, 3, 5);
  CAPTURE(ranks, step);
  std::vector<EpochRecord> told(static_cast<std::size_t>(ranks));
  run_thread_ranks(ranks, [&](comm::ProcessGroup& group) {
    SpoiledTraining training(group, {.epochs = 4});
    spoil_loss(training, step, ranks - 1);
    std::int64_t epochs = 0;
    TrainObserver observer;
    observer.epoch = [&](const EpochRecord& epoch) {
      ++epochs;
      told[static_cast<std::size_t>(group.rank())] = epoch;
    };
    if (group.rank() == 0) observer.stop = [] { return false; };  // one rank that asks is enough
    const EpochRecord last = training.trainer->run(observer);
    require(last.diverged == Divergence{.step = step}, "diverged at {}", last.diverged ? last.diverged->step : 0);
    require(training.trainer->steps_done() == step, "{} steps", training.trainer->steps_done());
    require(epochs == (step - 1) / kStepsInEpoch + 1 && last.epoch == epochs, "{} epochs", epochs);
    require(!last.stopped && std::isnan(last.test_loss) && !std::isfinite(last.train_loss), "figures");
  });
  for (const EpochRecord& record : told) CHECK(record.diverged == Divergence{.step = step});
}

TEST_CASE("ranks that nobody asks to stop end with the epoch or the next step record, and name the step", "[threads]") {
  const std::int64_t log_every = GENERATE(0, 2);
  CAPTURE(log_every);
  std::array<std::int64_t, 2> steps{};
  run_thread_ranks(2, [&](comm::ProcessGroup& group) {
    SpoiledTraining training(group, {.epochs = 4, .log_every = log_every});
    spoil_loss(training, 4, 1);  // an epoch has three steps
    const EpochRecord last = training.trainer->run({});
    require(last.diverged == Divergence{.step = 4}, "diverged at {}", last.diverged ? last.diverged->step : 0);
    steps[static_cast<std::size_t>(group.rank())] = training.trainer->steps_done();
  });
  const std::int64_t expected = log_every == 0 ? 6 : 4;
  CHECK(steps == std::array<std::int64_t, 2>{expected, expected});
}

TEST_CASE("as many skipped steps in a row as are allowed end training, fewer do not", "[threads]") {
  const int ranks = GENERATE(1, 2);
  CAPTURE(ranks);
  run_thread_ranks(ranks, [&](comm::ProcessGroup& group) {
    const auto run = [&](std::int64_t limit, std::int64_t spoiled) {
      SpoiledTraining training(group, {.epochs = 4, .max_skipped_steps = limit}, -1, DType::f16);
      training.spoiler->spoils = [&] {
        const std::int64_t step = training.trainer->steps_done() + 1;
        return group.rank() == ranks - 1 && step >= 3 && step < 3 + spoiled;
      };
      return training.trainer->run({});
    };
    const EpochRecord ended = run(4, 4);
    require(ended.diverged == Divergence{.step = 6, .skipped_steps = 4}, "ended at {}",
            ended.diverged ? ended.diverged->step : 0);
    require(std::isfinite(ended.train_loss) && ended.epoch == 2 && ended.skipped_steps == 4, "figures of the end");
    for (const EpochRecord& whole : {run(5, 4), run(0, 100)})
      require(!whole.diverged && whole.epoch == 4, "it ended early");
  });
  comm::ProcessGroup alone(comm::make_self_backend());
  CHECK_THAT(error_of([&] { SpoiledTraining(alone, {.max_skipped_steps = -1}); }),
             ContainsText("max_skipped_steps -1 must be 0 (no limit) or more"));
}

TEST_CASE("training that is stopped in an evaluation goes on with that evaluation", "[threads]") {
  const int ranks = GENERATE(1, 2);
  const bool validates = GENERATE(false, true);
  CAPTURE(ranks, validates);
  run_thread_ranks(ranks, [&](comm::ProcessGroup& group) {
    TrainerOptions options{.epochs = 2};
    std::unique_ptr<data::Loader> validation;
    if (validates) {
      validation = SpoiledTraining(group, {}).loader_of(-1, false, DType::f32);
      options.validation = validation.get();
    }
    SpoiledTraining whole(group, options), stopped(group, options);
    const EpochRecord expected = whole.trainer->run({});
    std::int64_t batches = 0, epochs = 0;
    const auto handle = stopped.model.register_forward_hook(
        [&](layers::Module& model, const Tensor&, const Tensor&) { batches += model.training() ? 0 : 1; });
    TrainObserver observer;
    observer.epoch = [&](const EpochRecord&) { ++epochs; };
    observer.stop = [&] { return group.rank() == ranks - 1 && batches == 2; };
    const EpochRecord first = stopped.trainer->run(observer);
    require(first.stopped && first.epoch == 1 && batches == 2 && epochs == 0, "{} batches, {} epochs", batches, epochs);
    require(std::isnan(first.test_loss) && stopped.trainer->epochs_done() == 0 &&
                stopped.trainer->steps_done() == kStepsInEpoch,
            "it was evaluated");
    observer.stop = {};
    const EpochRecord last = stopped.trainer->run(observer);
    require(epochs == 2 && last.test_loss == expected.test_loss && last.train_loss == expected.train_loss &&
                last.best == expected.best && stopped.weights() == whole.weights(),
            "it went on otherwise");
  });
}

TEST_CASE("training that is stopped in its last evaluation has only that left") {
  comm::ProcessGroup group(comm::make_self_backend());
  SpoiledTraining other(group, {});
  const auto validation = other.loader_of(-1, false, DType::f32);
  SpoiledTraining training(group, {.validation = validation.get(), .epochs = 1});
  std::int64_t batches = 0;
  training.model.register_forward_hook(
      [&](layers::Module& model, const Tensor&, const Tensor&) { batches += model.training() ? 0 : 1; });
  const EpochRecord first = training.trainer->run({.stop = [&] { return batches == 4; }});  // three are of validation
  CHECK(first.stopped);
  CHECK((std::isnan(first.test_loss) && std::isfinite(first.validation_loss)));
  CHECK(training.trainer->epochs_done() == 1);
  const EpochRecord last = training.trainer->run({});
  CHECK_FALSE(last.stopped);
  CHECK(std::isfinite(last.test_loss));
  CHECK(training.trainer->steps_done() == kStepsInEpoch);
}
