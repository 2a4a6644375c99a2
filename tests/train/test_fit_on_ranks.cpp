// Trainers of several ranks that were told little: what must be alike, who may end training, what all see.
#include "tandem/autograd/functions/softmax_cross_entropy.h"
#include "tandem/autograd/variable.h"
#include "tandem/optim/sgd.h"
#include "tandem/train/trainer.h"
#include "tests/comm/thread_ranks.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"
#include "tests/train/fit_run.h"

#include <cmath>

using namespace tandem;
using namespace tandem::test;
using train::EpochRecord;
using train::Trainer;
using train::TrainerOptions;

TEST_CASE("on several ranks, parameters that no replicas exchange are refused", "[threads]") {
  std::vector<std::string> errors(2);
  run_thread_ranks(2, [&](comm::ProcessGroup& group) {
    FitRun run(2, group.rank());
    const Tensor temperature = autograd::set_requires_grad(Tensor::full({1}, 1.0));
    std::vector<Tensor> parameters = run.model.parameters();
    parameters.push_back(temperature);
    optim::SGD optimizer(parameters, {.lr = 0.1});
    const train::LossFunction loss = [=](const Tensor& output, const Tensor& labels) {
      return autograd::softmax_cross_entropy(output * temperature, labels);
    };
    errors[static_cast<std::size_t>(group.rank())] =
        error_of([&] { Trainer(run.model, optimizer, run.loader, {.group = &group, .loss = loss}).fit(1); });
    NamedTensors all = run.model.named_parameters();
    all.emplace_back("temperature", temperature);
    comm::DistributedDataParallel replicas(group, all, {});
    Trainer(run.model, optimizer, run.loader, {.group = &group, .loss = loss, .replicas = &replicas}).fit(1);
  });
  for (const std::string& error : errors)
    CHECK_THAT(error, ContainsText("trainer: parameter 2 of the optimizer, f32[1], is none of the model's"));
}

TEST_CASE("what differs between ranks that train together is named, rather than waited for", "[threads]") {
  struct Case {
    const char* expected;
    std::function<void(TrainerOptions&, FitRun&)> change;  // on rank 0
  };
  const Case cases[] = {
      {"the trainer differs between ranks: log_every is 2 on rank 0 and 0 on rank 1",
       [](TrainerOptions& options, FitRun&) { options.log_every = 2; }},
      {"epochs is 0 on rank 0 and 1 on rank 1", [](TrainerOptions& options, FitRun&) { options.epochs = 0; }},
      {"l1 is 1 on rank 0 and 0 on rank 1", [](TrainerOptions& options, FitRun&) { options.l1 = 1.0; }},
      {"clip_norm is 1 on rank 0 and 0 on rank 1", [](TrainerOptions& options, FitRun&) { options.clip_norm = 1.0; }},
      {"check_replicas is true on rank 0 and false on rank 1",
       [](TrainerOptions& options, FitRun&) { options.check_replicas = true; }},
      {"accumulation is 3 on rank 0 and 1 on rank 1",
       [](TrainerOptions& options, FitRun&) { options.accumulation = 3; }},
      {"metrics is ones on rank 0 and none on rank 1",
       [](TrainerOptions& options, FitRun&) { options.metrics = {{"ones", rows}}; }},
      {"test is given on rank 0 and none on rank 1",
       [](TrainerOptions& options, FitRun& run) { options.test = &run.test; }},
      {"lr is 0.5 on rank 0 and 0.1 on rank 1", [](TrainerOptions&, FitRun& run) { run.optimizer->set_lr(0.5); }},
  };
  for (const Case& test : cases) {
    std::vector<std::string> errors(2);
    run_thread_ranks(2, [&](comm::ProcessGroup& group) {
      FitRun run(2, group.rank());
      TrainerOptions options{.group = &group};
      if (group.rank() == 0) test.change(options, run);
      errors[static_cast<std::size_t>(group.rank())] =
          error_of([&] { Trainer(run.model, *run.optimizer, run.loader, options).fit(1); });
    });
    CHECK_THAT(errors[0], ContainsText(test.expected));
    CHECK(errors[1] == errors[0]);
  }

  std::vector<std::string> epochs(2), orders(2);
  run_thread_ranks(2, [&](comm::ProcessGroup& group) {
    const auto rank = static_cast<std::size_t>(group.rank());
    FitRun run(2, group.rank());
    epochs[rank] =
        error_of([&] { Trainer(run.model, *run.optimizer, run.loader, {.group = &group}).fit(1 + group.rank()); });
    data::Loader other(run.train_images, {20, 2, group.rank(), true, static_cast<std::uint64_t>(group.rank())}, {});
    orders[rank] = error_of([&] { Trainer(run.model, *run.optimizer, other, {.group = &group}); });
  });
  CHECK_THAT(epochs[1],
             ContainsText("training differs between ranks: epochs is 1 to 1 on rank 0 and 1 to 2 on rank 1"));
  CHECK_THAT(orders[1],
             ContainsText("training.order is shuffled by seed 0 on rank 0 and shuffled by seed 1 on rank 1"));
}

TEST_CASE("one rank may end training for all", "[threads]") {
  std::vector<std::int64_t> epochs(2);
  run_thread_ranks(2, [&](comm::ProcessGroup& group) {
    FitRun run(2, group.rank());
    Trainer trainer(run.model, *run.optimizer, run.loader, {.group = &group});
    train::TrainObserver observer;
    if (group.rank() == 0) observer.keep_going = [](const EpochRecord& record) { return record.epoch < 2; };
    epochs[static_cast<std::size_t>(group.rank())] = trainer.fit(5, observer).epoch;
  });
  CHECK(epochs == std::vector<std::int64_t>{2, 2});
}

TEST_CASE("a trainer goes on after a metric that threw on all ranks", "[threads]") {
  const std::int64_t accumulation = GENERATE(1, 2);
  std::vector<double> losses(2);
  std::vector<std::string> errors(2);
  run_thread_ranks(2, [&](comm::ProcessGroup& group) {
    FitRun run(2, group.rank());
    int calls = 0;
    const auto failing = [&](const Tensor& output, const Tensor&) {
      require(++calls != 2, "the metric has a bad day");
      return rows(output, output);
    };
    Trainer trainer(run.model, *run.optimizer, run.loader,
                    {.group = &group, .metrics = {{"ones", failing}}, .accumulation = accumulation});
    const auto rank = static_cast<std::size_t>(group.rank());
    errors[rank] = error_of([&] { trainer.fit(1); });
    losses[rank] = trainer.fit(2).train_loss;
  });
  CHECK(errors == std::vector<std::string>(2, "metric 'ones': the metric has a bad day"));
  CHECK(std::isfinite(losses[0]));
  CHECK(losses[0] == losses[1]);
}

TEST_CASE("ranks fit equal replicas, whose figures are of all samples", "[threads]") {
  // A last batch of 4 images for training, and 2 images in all for the test, of which the third rank has none.
  std::vector<std::vector<float>> weights(3);
  std::vector<EpochRecord> records(3);
  run_thread_ranks(3, [&](comm::ProcessGroup& group) {
    FitRun run(3, group.rank(), 1 + static_cast<std::uint64_t>(group.rank()), 2);  // weights differ before
    const auto rank = static_cast<std::size_t>(group.rank());
    Trainer trainer(run.model, *run.optimizer, run.loader,
                    {.test = &run.test, .group = &group, .metrics = {{"ones", rows}}, .check_replicas = true});
    records[rank] = trainer.fit(
        5, {.keep_going = [&](const EpochRecord& record) { return record.epoch < 2 || group.rank() != 1; }});
    weights[rank] = run.weights();
  });
  FitRun alone(1, 0, 1, 2);
  const EpochRecord one = Trainer(alone.model, *alone.optimizer, alone.loader, {.test = &alone.test}).fit(2);
  for (std::size_t rank = 0; rank < 3; ++rank) {
    CHECK(weights[rank] == weights[0]);
    CHECK(records[rank].epoch == 2);  // one rank ended it
    CHECK(records[rank].train_metrics[0].second == 1.0);
    CHECK(records[rank].test_metrics[0].second == 1.0);
    CHECK(records[rank].test_loss == Approx(one.test_loss).epsilon(1e-4));  // other orders of sums
  }
}
