// Trainers of several ranks that were told little: what must be alike, who may end training, what all see.
#include "tandem/autograd/functions/softmax_cross_entropy.h"
#include "tandem/autograd/variable.h"
#include "tandem/comm/agreement.h"
#include "tandem/data/batch.h"
#include "tandem/optim/sgd.h"
#include "tandem/train/evaluation.h"
#include "tandem/train/metrics.h"
#include "tandem/train/trainer.h"
#include "tests/comm/thread_ranks.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"
#include "tests/train/fit_run.h"

#include <cmath>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

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
      {"cuda_graph is auto on rank 0 and off on rank 1",
       [](TrainerOptions& options, FitRun&) { options.cuda_graph = train::CudaGraph::automatic; }},
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

namespace {

using MetricFunction = std::function<double(const Tensor& output, const Tensor& labels)>;

/// Two ranks' errors of `call`, which is given what it is to be of, its group, and a metric that throws on rank 1.
std::vector<std::string> errors_on_ranks(
    const std::function<void(FitRun& run, comm::ProcessGroup& group, const MetricFunction& metric)>& call) {
  std::vector<std::string> errors(2);
  run_thread_ranks(2, [&](comm::ProcessGroup& group) {
    FitRun run(2, group.rank(), 1, 16);
    int calls = 0;
    const MetricFunction metric = [&](const Tensor& output, const Tensor&) {
      require(group.rank() != 1 || ++calls != 2, "the metric has a bad day");
      return rows(output, output);
    };
    errors[static_cast<std::size_t>(group.rank())] = error_of([&] { call(run, group, metric); });
    CHECK(group.all_gather_bytes("here").size() == 2);  // the ranks are still in step
  });
  return errors;
}

}  // namespace

TEST_CASE("an evaluation that fails on one rank ends on all, with its error", "[threads]") {
  for (const bool asks : {false, true}) {
    std::vector<int> asked(2, 0);
    const auto errors = errors_on_ranks([&](FitRun& run, comm::ProcessGroup& group, const MetricFunction& metric) {
      const train::Scoring scoring({}, {{"ones", metric}});
      const auto ends = [&] {
        ++asked[static_cast<std::size_t>(group.rank())];
        return train::max_over_ranks(0.0, group) > 0.0;
      };
      train::evaluate_unless(asks ? std::function<bool()>(ends) : nullptr, run.model, run.test, group, scoring);
    });
    CHECK(errors == std::vector<std::string>(2, "rank 1: metric 'ones': the metric has a bad day"));
    CHECK(asked == std::vector<int>(2, asks ? 4 : 0));  // behind each batch, also of the rank that had failed
  }
}

TEST_CASE("what is no Error ends an evaluation as it was on its rank, and as an Error on the others", "[threads]") {
  std::vector<std::string> seen(2);
  run_thread_ranks(2, [&](comm::ProcessGroup& group) {
    FitRun run(2, group.rank());
    const train::LossFunction loss = [&](const Tensor& output, const Tensor& labels) {
      if (group.rank() == 1) throw std::out_of_range("the program's own");
      return energy(output, labels);
    };
    auto& mine = seen[static_cast<std::size_t>(group.rank())];
    try {
      train::evaluate(run.model, run.test, group, train::Scoring(loss));
    } catch (const comm::AgreedError& error) {
      mine = error.what();
    } catch (const std::out_of_range& error) {
      mine = std::string("as it was: ") + error.what();
    }
  });
  CHECK(seen == std::vector<std::string>{"rank 1: the program's own", "as it was: the program's own"});
}

TEST_CASE("a rehearsed evaluation that fails on one rank ends on all", "[threads]") {
  std::vector<std::string> errors(2);
  run_thread_ranks(2, [&](comm::ProcessGroup& group) {
    FitRun run(2, group.rank());
    const train::ForwardFunction forward = [&](layers::Module& model, const data::Batch& batch) {
      require(model.training() || group.rank() == 0, "no evaluation here");
      return model(batch.images);
    };
    Trainer trainer(run.model, *run.optimizer, run.loader, {.test = &run.test, .group = &group, .forward = forward});
    errors[static_cast<std::size_t>(group.rank())] = error_of([&] { trainer.rehearse(1); });
  });
  CHECK(errors == std::vector<std::string>(2, "rank 1: no evaluation here"));
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
