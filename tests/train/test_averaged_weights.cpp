// Training with a moving average of the weights.
#include "tandem/autograd/precision.h"
#include "tandem/comm/backends/backend.h"
#include "tandem/layers/layers.h"
#include "tandem/train/averaged_model.h"
#include "tandem/train/evaluation.h"
#include "tandem/train/trainer.h"
#include "tests/comm/thread_ranks.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"
#include "tests/train/averaging_run.h"

#include <map>

using namespace tandem;
using namespace tandem::test;
using namespace tandem::train;

namespace {

using Run = AveragingRun;

/// Two names of one weight, and another.
struct Tied final : layers::Module {
  Tensor first, second, other;

  Tied()
      : first(layers::Initializer::constant({2, 2}, 1.0)),
        second(first),
        other(layers::Initializer::constant({3}, 2.0)) {
    register_parameter("first", first);
    register_parameter("second", second);
    register_parameter("other", other);
  }
  Tensor forward(const Tensor& x) override { return x; }
  std::string describe() const override { return "Tied"; }
};

}  // namespace

TEST_CASE("the average of the weights is evaluated, and training does not know of it") {
  const DType dtype = GENERATE(DType::f32, DType::f16);
  CAPTURE(name_of(dtype));
  comm::ProcessGroup group(comm::make_self_backend());
  Run run(group, dtype), plain(group, dtype), loaded(group, dtype);
  Trainer trainer(run.model, *run.optimizer, run.loader, {.test = &run.test, .scaler = &run.scaler, .ema = 0.9});
  const EpochRecord record = trainer.fit(2);
  Trainer without(plain.model, *plain.optimizer, plain.loader, {.test = &plain.test, .scaler = &plain.scaler});
  const EpochRecord raw = without.fit(2);
  CHECK(values_of(run.model.state_dict()) == values_of(plain.model.state_dict()));
  CHECK(record.train_loss == raw.train_loss);
  CHECK(record.test_loss != raw.test_loss);
  CHECK(values_of(trainer.weights()) != values_of(without.weights()));
  // What is saved gives the figures that were told, running statistics included.
  loaded.model.load_state_dict(trainer.weights());
  CHECK(evaluate(loaded.model, loaded.test, group).loss() == record.test_loss);
  CHECK(values_of(trainer.weights()).at("1.running_mean") != values_of(run.model.state_dict()).at("1.running_mean"));
}

TEST_CASE("the trainer's average is that of what the steps left") {
  comm::ProcessGroup group(comm::make_self_backend());
  Run run(group);
  Trainer trainer(run.model, *run.optimizer, run.loader, {.ema = 0.95});
  Values expected = values_of(run.model.state_dict());
  std::int64_t t = 0;
  trainer.run({.progress = [&](const Progress&) {
    const double d = std::min(0.95, (1.0 + static_cast<double>(t)) / (10.0 + static_cast<double>(t)));
    for (const auto& [name, values] : values_of(run.model.state_dict())) {
      for (std::size_t i = 0; i < values.size(); ++i) expected[name][i] = d * expected[name][i] + (1.0 - d) * values[i];
    }
    ++t;
  }});
  CHECK(t == 4);
  for (const auto& [name, values] : values_of(trainer.weights())) {
    CAPTURE(name);
    if (name == "1.num_batches_tracked") expected[name] = {4.0};  // a count
    for (std::size_t i = 0; i < values.size(); ++i)
      CHECK(std::abs(values[i] - expected[name][i]) < 1e-6 * (1.0 + std::abs(values[i])));
  }
}

TEST_CASE("a step that is skipped leaves the average") {
  comm::ProcessGroup group(comm::make_self_backend());
  Run run(group, DType::f16, 0x1p100);  // every gradient overflows
  Trainer trainer(run.model, *run.optimizer, run.loader, {.scaler = &run.scaler, .ema = 0.9});
  const Values before = values_of(trainer.weights());
  const EpochRecord record = trainer.fit(1);
  CHECK(record.skipped_steps == 4);
  CHECK(values_of(trainer.weights()) == before);
}

TEST_CASE("ranks have the same averages where an epoch ends", "[threads]") {
  std::vector<Values> averages(2);
  std::vector<double> losses(2);
  run_thread_ranks(2, [&](comm::ProcessGroup& group) {
    Run run(group);
    Trainer trainer(run.model, *run.optimizer, run.loader, {.test = &run.test, .group = &group, .ema = 0.9});
    const auto rank = static_cast<std::size_t>(group.rank());
    losses[rank] = trainer.fit(2).test_loss;
    averages[rank] = values_of(trainer.weights());
  });
  CHECK(averages[0] == averages[1]);
  CHECK(losses[0] == losses[1]);
}

TEST_CASE("a model with averaged weights has its own again, also weights with two names") {
  Tied model;
  if (GENERATE(false, true)) model.set_precision(autograd::Precision::fp16);
  const Values before = values_of(model.state_dict());
  REQUIRE(before.size() == 3);
  const optim::ExponentialMovingAverage ema(model.state_dict(), 0.5);
  model.first.detach().fill(3.0);
  model.other.detach().fill(4.0);
  const Values after = values_of(model.state_dict());
  REQUIRE(after.at("second") == std::vector<double>(4, 3.0));
  {
    const AveragedModel averaged(model, ema);
    CHECK(values_of(model.state_dict()) == before);
  }
  CHECK(values_of(model.state_dict()) == after);
}

TEST_CASE("a state with averages is not for a run without, nor the other way") {
  comm::ProcessGroup group(comm::make_self_backend());
  Run with(group), without(group);
  Trainer averaging(with.model, *with.optimizer, with.loader, {.ema = 0.9});
  Trainer plain(without.model, *without.optimizer, without.loader);
  averaging.fit(1);
  plain.fit(1);
  CHECK_THAT(error_of([&] { plain.load_state_dict(averaging.state_dict()); }),
             ContainsText("is of a run with an average of the weights, and this one has none"));
  const Values before = values_of(averaging.state_dict());
  CHECK_THAT(error_of([&] { averaging.load_state_dict(plain.state_dict()); }),
             ContainsText("is of a run without an average of the weights, and this one keeps one"));
  CHECK(values_of(averaging.state_dict()) == before);
  CHECK_THAT(error_of([&] { Trainer(with.model, *with.optimizer, with.loader, {.ema = 1.0}); }),
             ContainsText("the decay ema 1 must be 0 (no average) or below 1"));
}
