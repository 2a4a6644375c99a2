// Training with slow weights: what a trainer does with them, and when.
#include "tandem/kernels/activation/activation.h"
#include "tandem/optim/lookahead.h"

#include "tandem/autograd/precision.h"
#include "tandem/comm/backends/backend.h"
#include "tandem/layers/layers.h"
#include "tandem/train/evaluation.h"
#include "tandem/train/trainer.h"
#include "tests/comm/thread_ranks.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"
#include "tests/train/averaging_run.h"

#include <map>
#include <optional>

using namespace tandem;
using namespace tandem::test;
using namespace tandem::train;

namespace {

using Run = AveragingRun;

constexpr std::int64_t kStepsInEpoch = 4;  // of 28 images in eights

/// Those of the state under a prefix.
Values part_of(const Values& state, const std::string& prefix) {
  Values part;
  for (const auto& [name, values] : state)
    if (name.starts_with(prefix)) part[name.substr(prefix.size())] = values;
  return part;
}

}  // namespace

TEST_CASE("a trainer moves slow weights behind each step that was taken, and ends with them") {
  const double scale = GENERATE(-1.0, 0.0, 4e6);  // below 0: f32; the last skips some steps
  const DType dtype = scale < 0.0 ? DType::f32 : DType::f16;
  const std::int64_t epochs = 7, steps = epochs * kStepsInEpoch;  // 28: three behind the last move
  CAPTURE(name_of(dtype), scale);
  comm::ProcessGroup group(comm::make_self_backend());
  Run run(group, dtype, scale), plain(group, dtype, scale), loaded(group, dtype);
  const optim::LookaheadOptions options{.every = 5, .decay = 0.9, .power = 2.0};
  Trainer trainer(
      run.model, *run.optimizer, run.loader,
      {.test = &run.test, .scaler = scale > 0.0 ? &run.scaler : nullptr, .epochs = epochs, .lookahead = options});
  const EpochRecord record = trainer.run({});

  // The same by a program that knows of each step.
  Trainer without(plain.model, *plain.optimizer, plain.loader,
                  {.test = &plain.test, .scaler = scale > 0.0 ? &plain.scaler : nullptr, .epochs = epochs});
  optim::Lookahead lookahead(plain.model.state_dict(), *plain.optimizer, options);
  Values before_finish;
  const EpochRecord expected = without.run({.progress = [&](const Progress&) {
    const std::int64_t step = without.steps_done();
    if (without.skipped_in_a_row() == 0) lookahead.after_step(step, steps);
    if (step < steps) return;
    before_finish = values_of(plain.model.state_dict());
    lookahead.finish();
  }});
  CHECK(record.skipped_steps == expected.skipped_steps);
  if (scale > 0.0) CHECK(record.skipped_steps > 0);
  CHECK(lookahead.steps_taken() == steps - record.skipped_steps);
  CHECK(values_of(run.model.state_dict()) == values_of(plain.model.state_dict()));
  CHECK(values_of(run.model.state_dict()) != before_finish);
  CHECK(values_of(run.optimizer->state_dict()) == values_of(plain.optimizer->state_dict()));
  CHECK(record.train_loss == expected.train_loss);
  CHECK(record.test_loss == expected.test_loss);

  const Values state = values_of(trainer.state_dict()), slow = part_of(state, "lookahead.");
  CHECK(slow == values_of(lookahead.slow_weights()));
  CHECK(slow.size() == 8);  // four weights and biases, gain and bias, two running statistics
  for (const auto& [name, values] : slow) {
    CAPTURE(name);
    CHECK(part_of(state, "model.").at(name) == values);  // masters, where there are such
  }
  CHECK(part_of(state, "model.").at("1.num_batches_tracked") == std::vector<double>{static_cast<double>(steps)});
  // What is saved gives the figures that were told.
  loaded.model.load_state_dict(trainer.weights());
  CHECK(evaluate(loaded.model, loaded.test, group).loss() == record.test_loss);
}

TEST_CASE("the trainer's slow weights are those of plain loops over what the steps left") {
  comm::ProcessGroup group(comm::make_self_backend());
  Run run(group);
  Trainer trainer(run.model, *run.optimizer, run.loader,
                  {.epochs = 7, .lookahead = {.every = 1, .decay = 0.8, .power = 1.0}});
  Values slow = values_of(run.model.state_dict());
  Values before;
  // With a move behind each step, what momentum and gradient make of the weights is known: w - lr * buffer.
  before = slow;
  trainer.run({.progress = [&](const Progress&) {
    const auto t = static_cast<double>(trainer.steps_done());
    const double d = 0.8 * t / 28.0;
    const Values now = values_of(run.model.state_dict());
    const NamedTensors state = run.optimizer->state_dict();
    const auto buffer = [&](const std::string& name) {
      for (const auto& [own, tensor] : state)
        if (own == name) return autograd::cast(tensor, DType::f64).to_vector<double>();
      return std::vector<double>();
    };
    std::size_t index = 0;
    for (const auto& [name, parameter] : run.model.named_parameters()) {
      CAPTURE(name, t);
      const std::vector<double> velocity = buffer(fmt::format("{}.momentum_buffer", index++));
      REQUIRE(velocity.size() == now.at(name).size());
      for (std::size_t i = 0; i < velocity.size(); ++i) {
        const double w = before.at(name)[i] - 0.05 * velocity[i];
        slow[name][i] = d * before.at(name)[i] + (1.0 - d) * w;  // slow weights are what the step began with
        REQUIRE(std::abs(now.at(name)[i] - slow[name][i]) <= 1e-6 * (1.0 + std::abs(w)));
      }
    }
    before = now;
  }});
}

TEST_CASE("fit() and runs of so many steps end with slow weights, and their decay rises up to that end") {
  comm::ProcessGroup group(comm::make_self_backend());
  const optim::LookaheadOptions options{.every = 3, .decay = 0.9, .power = 1.0};
  const auto ends_with_slow = [](const Trainer& trainer) {
    const Values state = values_of(trainer.state_dict()), model = part_of(state, "model.");
    for (const auto& [name, values] : part_of(state, "lookahead."))
      if (model.at(name) != values) return false;
    return true;
  };
  Run by_epochs(group), by_fit(group), by_steps(group), by_epoch(group);
  Trainer epochs(by_epochs.model, *by_epochs.optimizer, by_epochs.loader, {.epochs = 2, .lookahead = options});
  epochs.run({});
  CHECK(ends_with_slow(epochs));
  Trainer fit(by_fit.model, *by_fit.optimizer, by_fit.loader, {.lookahead = options});
  fit.fit(2);
  CHECK(values_of(fit.weights()) == values_of(epochs.weights()));
  Trainer each(by_epoch.model, *by_epoch.optimizer, by_epoch.loader, {.epochs = 2, .lookahead = options});
  each.run_epoch(1, {});
  CHECK_FALSE(ends_with_slow(each));  // one step behind the first move
  each.run_epoch(2, {});
  CHECK(values_of(each.weights()) == values_of(epochs.weights()));

  Trainer steps(by_steps.model, *by_steps.optimizer, by_steps.loader, {.steps = 7, .lookahead = options});
  std::vector<bool> at_slow;
  steps.run({.progress = [&](const Progress&) { at_slow.push_back(ends_with_slow(steps)); }});
  CHECK(at_slow == std::vector<bool>{false, false, true, false, false, true, true});
  CHECK(steps.steps_done() == 7);
  CHECK(values_of(steps.weights()) != values_of(epochs.weights()));
}

TEST_CASE("a run that ends before its last step keeps its weights, which were evaluated") {
  comm::ProcessGroup group(comm::make_self_backend());
  Run run(group), loaded(group);
  Trainer trainer(run.model, *run.optimizer, run.loader, {.test = &run.test, .epochs = 9, .lookahead = {.every = 3}});
  const EpochRecord record = trainer.run({.keep_going = [](const EpochRecord&) { return false; }});
  CHECK(record.epoch == 1);
  const Values state = values_of(trainer.state_dict());
  CHECK(part_of(state, "model.").at("0.weight") != part_of(state, "lookahead.").at("0.weight"));
  loaded.model.load_state_dict(trainer.weights());
  CHECK(evaluate(loaded.model, loaded.test, group).loss() == record.test_loss);
}

TEST_CASE("a step that is skipped moves nothing") {
  comm::ProcessGroup group(comm::make_self_backend());
  Run run(group, DType::f16, 0x1p100);  // every gradient overflows
  Trainer trainer(run.model, *run.optimizer, run.loader, {.scaler = &run.scaler, .lookahead = {.every = 2}});
  const Values before = values_of(trainer.state_dict());
  const EpochRecord record = trainer.fit(1);
  CHECK(record.skipped_steps == 4);
  const Values after = values_of(trainer.state_dict());
  CHECK(part_of(after, "lookahead.") == part_of(before, "lookahead."));
  CHECK(after.at("trainer.lookahead_steps") == std::vector<double>{0.0});
}

TEST_CASE("ranks have the same slow weights where an epoch ends, and two end as one does", "[threads]") {
  // Without batch norm, whose statistics are a rank's own.
  const auto run_on = [](int ranks, bool with_norm) {
    std::vector<Values> states(static_cast<std::size_t>(ranks));
    run_thread_ranks(ranks, [&](comm::ProcessGroup& group) {
      layers::Initializer initializer(1);
      layers::Sequential model;
      model.add<layers::Conv2d>({.in = 1, .out = 4, .kernel = 3, .padding = 1}, initializer);
      if (with_norm) model.add<layers::BatchNorm2d>({.channels = 4, .activation = layers::Activation::relu});
      model.add<layers::Flatten>();
      model.add<layers::Linear>({.in = 256, .out = 10}, initializer);
      optim::SGD sgd(model.parameters(), {.lr = 0.02, .momentum = 0.9});
      data::Loader loader(Run::images(28, 3), {28, group.size(), group.rank(), true, 1}, {.global_batch_size = 8});
      Trainer trainer(model, sgd, loader,
                      {.group = &group, .lookahead = {.every = 5, .power = 1.0}, .check_replicas = true});
      trainer.fit(7);
      states[static_cast<std::size_t>(group.rank())] = part_of(values_of(trainer.state_dict()), "lookahead.");
    });
    return states;
  };
  const std::vector<Values> with_norm = run_on(2, true);
  CHECK(with_norm[0].size() == 8);
  CHECK(with_norm[0] == with_norm[1]);
  const std::vector<Values> one = run_on(1, false), two = run_on(2, false);
  CHECK(two[0] == two[1]);
  for (const auto& [name, values] : one[0]) {
    CAPTURE(name);
    for (std::size_t i = 0; i < values.size(); ++i)
      CHECK(two[0].at(name)[i] == Approx(values[i]).epsilon(1e-4).margin(1e-6));  // sums in another order
  }
}

TEST_CASE("a state with slow weights is not for a run without, nor the other way") {
  comm::ProcessGroup group(comm::make_self_backend());
  Run with(group), without(group);
  Trainer slow(with.model, *with.optimizer, with.loader, {.lookahead = {.every = 3}});
  Trainer plain(without.model, *without.optimizer, without.loader);
  slow.fit(1);
  plain.fit(1);
  CHECK_THAT(error_of([&] { plain.load_state_dict(slow.state_dict()); }),
             ContainsText("is of a run with slow weights (lookahead), and this one has none"));
  const Values before = values_of(slow.state_dict());
  CHECK_THAT(error_of([&] { slow.load_state_dict(plain.state_dict()); }),
             ContainsText("is of a run without slow weights (lookahead), and this one keeps some"));
  CHECK(values_of(slow.state_dict()) == before);
  CHECK_THAT(
      error_of([&] { Trainer(with.model, *with.optimizer, with.loader, {.ema = 0.9, .lookahead = {.every = 3}}); }),
      ContainsText("both ema and lookahead average the weights"));
}
