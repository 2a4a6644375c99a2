// Runs with a validation set, and runs that end early.
#include "tandem/comm/backends/backend.h"
#include "tandem/data/synthetic.h"
#include "tandem/layers/layers.h"
#include "tandem/optim/sgd.h"
#include "tandem/train/evaluation.h"
#include "tandem/train/trainer.h"
#include "tests/comm/thread_ranks.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"

#include <cmath>

using namespace tandem;
using namespace tandem::test;
using namespace tandem::train;

namespace {

std::shared_ptr<const data::ImageDataset> images(std::int64_t count, std::uint64_t seed) {
  return std::make_shared<const data::ImageDataset>(
      data::make_synthetic({.count = count, .channels = 1, .side = 8, .seed = seed}));
}

struct Run {
  layers::Sequential model;
  std::unique_ptr<optim::SGD> optimizer;
  data::Loader loader, validation, test;

  explicit Run(const comm::ProcessGroup& group, std::uint64_t seed = 1)
      : loader(images(20, 3), {20, group.size(), group.rank(), true, 1}, {.global_batch_size = 8}),
        validation(images(7, 4), {7, group.size(), group.rank(), false, 1}, {.global_batch_size = 4}),
        test(images(9, 5), {9, group.size(), group.rank(), false, 1}, {.global_batch_size = 4}) {
    layers::Initializer initializer(seed);
    model.add<layers::Flatten>();
    model.add<layers::Linear>({.in = 64, .out = 10}, initializer);
    optimizer = std::make_unique<optim::SGD>(model.parameters(), optim::SGDOptions{.lr = 0.3, .momentum = 0.9});
  }
};

}  // namespace

TEST_CASE("with a validation set each epoch is evaluated on it, and test once, at the end") {
  comm::ProcessGroup group(comm::make_self_backend());
  Run run(group), untested(group);
  Trainer trainer(run.model, *run.optimizer, run.loader,
                  {.test = &run.test, .validation = &run.validation, .epochs = 3});
  std::vector<EpochRecord> epochs;
  const EpochRecord last = trainer.run({.epoch = [&](const EpochRecord& epoch) {
    epochs.push_back(epoch);
    const Metrics expected = evaluate(run.model, run.validation, group);
    CHECK(epoch.validation_loss == expected.loss());
    CHECK(epoch.validation_accuracy == expected.accuracy());
    CHECK(std::isnan(epoch.test_loss));
    CHECK(std::isnan(epoch.test_accuracy));
  }});
  REQUIRE(epochs.size() == 3);
  const Metrics test = evaluate(run.model, run.test, group);
  CHECK(last.test_loss == test.loss());
  CHECK(last.test_accuracy == test.accuracy());
  CHECK(last.validation_loss == epochs.back().validation_loss);
  REQUIRE(last.best);
  CHECK(last.best->by == "validation_loss");
  std::size_t best = 0;
  for (std::size_t i = 0; i < 3; ++i)
    if (epochs[i].validation_loss < epochs[best].validation_loss) best = i;
  CHECK(last.best == BestFigure{"validation_loss", epochs[best].epoch, epochs[best].validation_loss});
  // Evaluating is no part of training.
  Trainer alone(untested.model, *untested.optimizer, untested.loader, {.epochs = 3});
  CHECK(std::isnan(alone.run({}).validation_loss));
  CHECK(untested.model.parameters()[0].to_vector<float>() == run.model.parameters()[0].to_vector<float>());

  const EpochRecord again = trainer.fit(1);  // its end is one, too
  CHECK(std::isfinite(again.test_loss));
  Trainer evaluating(run.model, *run.optimizer, run.loader,
                     {.test = &run.test, .validation = &run.validation, .epochs = 0});
  const EpochRecord evaluated = evaluating.run({});
  CHECK(evaluated.validation_loss == again.validation_loss);
  CHECK(evaluated.test_loss == again.test_loss);
}

TEST_CASE("early stopping ends a run behind the epoch that its patience ends with, on all ranks", "[threads]") {
  const int ranks = GENERATE(1, 2);
  std::vector<std::int64_t> ends(static_cast<std::size_t>(ranks));
  run_thread_ranks(ranks, [&](comm::ProcessGroup& group) {
    Run run(group);
    std::vector<double> losses;
    Trainer trainer(run.model, *run.optimizer, run.loader,
                    {.test = &run.test,
                     .validation = &run.validation,
                     .group = &group,
                     .epochs = 200,
                     .early_stopping = {.patience = 3, .min_delta = 0.01},
                     .best_by = BestBy::validation_loss});
    const EpochRecord last =
        trainer.run({.epoch = [&](const EpochRecord& epoch) { losses.push_back(epoch.validation_loss); }});
    BestEpoch expected(BestBy::validation_loss, {.patience = 3, .min_delta = 0.01});
    for (const double loss : losses) {
      if (expected.should_stop()) fail("the run went on after {} epochs", expected.epochs());
      EpochRecord epoch;
      epoch.epoch = expected.epochs() + 1;
      epoch.validation_loss = loss;
      expected.add(epoch);
    }
    if (!expected.should_stop() || !last.stopped_early) fail("the run ended after {} epochs", losses.size());
    if (!(last.best == expected.best()) || !std::isfinite(last.test_loss))
      fail("rank {}: the last record", group.rank());
    ends[static_cast<std::size_t>(group.rank())] = last.epoch;
  });
  CHECK(ends.front() > 3);
  CHECK(ends.front() < 200);
  CHECK(ends.back() == ends.front());
}

TEST_CASE("a run that is gone on with stops where the whole one does, and not again") {
  comm::ProcessGroup group(comm::make_self_backend());
  const auto options = [](Run& run) {
    return TrainerOptions{.test = &run.test, .epochs = 200, .early_stopping = {.patience = 3, .min_delta = 0.01}};
  };
  std::vector<NamedTensors> states;  // behind each epoch
  Run run(group);
  Trainer whole(run.model, *run.optimizer, run.loader, options(run));
  const EpochRecord end = whole.run({.epoch = [&](const EpochRecord&) {
    NamedTensors state;
    for (const auto& [name, tensor] : whole.state_dict()) state.emplace_back(name, tensor.detach().clone());
    states.push_back(state);
  }});
  REQUIRE(end.stopped_early);
  for (std::size_t i = 0; i < states.size(); ++i) {
    CAPTURE(i);
    Run other(group, 9);
    Trainer trainer(other.model, *other.optimizer, other.loader, options(other));
    trainer.load_state_dict(states[i]);
    const EpochRecord last = trainer.run({});
    CHECK(last.epoch == end.epoch);
    CHECK(last.test_loss == end.test_loss);
    CHECK(last.best == end.best);
    CHECK(last.stopped_early);
  }
}

TEST_CASE("early stopping needs figures of other data than what is trained on") {
  comm::ProcessGroup group(comm::make_self_backend());
  Run run(group);
  const auto refused = [&](const TrainerOptions& options) {
    return error_of([&] { Trainer(run.model, *run.optimizer, run.loader, options); });
  };
  const EarlyStopping stopping{.patience = 2};
  CHECK_THAT(refused({.early_stopping = stopping}), ContainsText("early stopping needs a test or a validation loader"));
  CHECK_THAT(refused({.test = &run.test, .early_stopping = stopping, .best_by = BestBy::validation_loss}),
             ContainsText("early stopping by validation_loss needs a validation loader"));
  CHECK_THAT(
      refused(
          {.test = &run.test, .validation = &run.validation, .early_stopping = stopping, .best_by = BestBy::test_loss}),
      ContainsText("early stopping by test_loss needs a test loader, and no validation loader"));
  CHECK_THAT(refused({.test = &run.test, .early_stopping = {.patience = -1}}), ContainsText("must be 0 or more"));
}
