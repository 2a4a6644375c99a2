// Runs that are left after some step and gone on with by another trainer, from a file.
#include "tests/train/resumed_run.h"

#include "tandem/autograd/functions.h"
#include "tandem/comm/backends/backend.h"
#include "tandem/layers/safetensors.h"
#include "tandem/train/trainer.h"
#include "tests/comm/thread_ranks.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"
#include "tests/support/temporary_directory.h"

#include <cmath>
#include <functional>
#include <limits>
#include <map>

using namespace tandem;
using namespace tandem::test;
using train::EpochRecord;

TEST_CASE("a run that goes on behind any step ends with the bits of one that was not left") {
  const Settings settings = GENERATE(
      Settings{}, Settings{.adam = true}, Settings{.accumulation = 3}, Settings{.adam = true, .dtype = DType::bf16},
      Settings{.dtype = DType::f16, .init_scale = 4e5}, Settings{.stream = true}, Settings{.ema = 0.9},
      Settings{.dtype = DType::f16, .init_scale = 4e5, .ema = 0.9}, Settings{.lookahead = 3},
      Settings{.adam = true, .dtype = DType::bf16, .lookahead = 3},
      Settings{.dtype = DType::f16, .init_scale = 4e5, .lookahead = 2}, Settings{.ema = 0.9, .groups = true},
      Settings{.dtype = DType::f16, .init_scale = 4e5, .groups = true}, Settings{.adam = true, .groups = true});
  CAPTURE(settings.adam, settings.accumulation, name_of(settings.dtype), settings.stream, settings.lookahead,
          settings.groups);
  comm::ProcessGroup group(comm::make_self_backend());
  const TemporaryDirectory folder;
  const auto path = [&](std::int64_t step) { return (folder.path() / fmt::format("{}.safetensors", step)).string(); };
  Run run(settings, group);
  write_state(path(0), *run.trainer, group);
  const Trace whole = trace_of(run, [&](std::int64_t step) { write_state(path(step), *run.trainer, group); });
  const auto steps = static_cast<std::int64_t>(whole.losses.size());
  CHECK(steps == kEpochs * (settings.accumulation == 3 ? 2 : 4));
  if (settings.init_scale > 0.0) {
    CHECK(whole.last.skipped_steps > 0);
    CHECK(whole.last.skipped_steps < steps);
  }
  for (std::int64_t step = 0; step <= steps; ++step) {
    CAPTURE(step);
    Run other(settings, group, 99);  // other weights, which the state replaces
    other.trainer->load_state_dict(layers::read_safetensors(path(step)).tensors);
    const Trace resumed = trace_of(other, {});
    // Behind the last step, the last epoch's evaluation is left to do.
    CHECK(resumed.losses.size() == static_cast<std::size_t>(steps - step));
    check_same_end(resumed, whole);
  }
}

TEST_CASE("a state has the master weights in place of half ones") {
  comm::ProcessGroup group(comm::make_self_backend());
  Run run({.adam = true, .dtype = DType::bf16}, group);
  trace_of(run, {});
  int masters = 0;
  for (const auto& [name, tensor] : run.trainer->state_dict()) {
    if (!name.starts_with("model.") || !name.ends_with("weight")) continue;
    CHECK(tensor.dtype() == DType::f32);
    const std::vector<float> values = tensor.to_vector<float>();
    const Tensor rounded = autograd::cast(tensor, DType::bf16);
    masters += autograd::cast(rounded, DType::f32).to_vector<float>() != values ? 1 : 0;
  }
  CHECK(masters > 0);  // with more digits than halves have
}

TEST_CASE("fit() goes on in the middle of an epoch, and a run that has all its epochs only evaluates") {
  comm::ProcessGroup group(comm::make_self_backend());
  Run run({}, group);
  NamedTensors in_the_middle;
  const Trace whole = trace_of(run, [&](std::int64_t step) {
    if (step != 6) return;
    for (const auto& [name, tensor] : run.trainer->state_dict())
      in_the_middle.emplace_back(name, tensor.detach().clone());
  });
  Run other({}, group, 2);
  other.trainer->load_state_dict(in_the_middle);
  const EpochRecord record = other.trainer->fit(1);
  CHECK(record.epoch == 2);
  CHECK(record.train_loss == whole.last.train_loss);
  CHECK(record.test_loss == whole.last.test_loss);

  Run at_end({}, group, 3);
  at_end.trainer->load_state_dict(run.trainer->state_dict());
  const EpochRecord evaluated = at_end.trainer->run({});
  CHECK(evaluated.epoch == 2);
  CHECK(evaluated.test_loss == whole.last.test_loss);
  CHECK(std::isnan(evaluated.train_loss));
  CHECK((!evaluated.trained && whole.last.trained));
}

TEST_CASE("training that the observer stops behind a step goes on behind it") {
  comm::ProcessGroup group(comm::make_self_backend());
  Run whole_run({}, group);
  const Trace whole = trace_of(whole_run, {});
  for (std::int64_t last = 1; last <= 8; ++last) {
    CAPTURE(last);
    Run run({}, group);
    std::int64_t epochs = 0;
    train::TrainObserver observer;
    observer.epoch = [&](const EpochRecord&) { ++epochs; };
    observer.stop = [&] { return run.trainer->steps_done() == last; };
    const EpochRecord stopped = run.trainer->run(observer);
    CHECK(stopped.stopped);
    CHECK(stopped.epoch == (last - 1) / 4 + 1);
    CHECK(epochs == (last - 1) / 4);
    CHECK(run.trainer->epochs_done() == epochs);
    CHECK(std::isnan(stopped.test_loss));
    CHECK(std::isfinite(stopped.train_loss));
    CHECK(stopped.world_size == 1);
    const Trace rest = trace_of(run, {});
    CHECK(rest.losses.size() == static_cast<std::size_t>(8 - last));
    CHECK_FALSE(rest.last.stopped);
    check_same_end(rest, whole);
  }
}

TEST_CASE("one rank that stops training stops it on all", "[threads]") {
  std::vector<std::int64_t> steps(2);
  run_thread_ranks(2, [&](comm::ProcessGroup& group) {
    Run run({}, group);
    train::TrainObserver observer;
    observer.stop = [&] { return group.rank() == 1 && run.trainer->steps_done() == 6; };
    run.trainer->run(observer);
    steps[static_cast<std::size_t>(group.rank())] = run.trainer->steps_done();
  });
  CHECK(steps == std::vector<std::int64_t>{6, 6});
}

TEST_CASE("ranks go on with the same bits, and another number of ranks with the same batches", "[threads]") {
  const TemporaryDirectory folder;
  const std::string path = (folder.path() / "state.safetensors").string();
  const bool looks_ahead = GENERATE(false, true);
  const Settings settings{.adam = true,
                          .local = GENERATE(true, false),
                          .ema = looks_ahead ? 0.0 : 0.9,
                          .lookahead = looks_ahead ? 3 : 0,
                          .groups = GENERATE(false, true)};
  std::vector<Trace> whole(2), resumed(2);
  run_thread_ranks(2, [&](comm::ProcessGroup& group) {
    Run run(settings, group);
    whole[static_cast<std::size_t>(group.rank())] = trace_of(run, [&](std::int64_t step) {
      const NamedTensors state = run.trainer->state_dict();
      if (step == 5 && group.rank() == 0) layers::write_safetensors(path, state);
    });
  });
  run_thread_ranks(2, [&](comm::ProcessGroup& group) {
    Run run(settings, group, 50);
    run.trainer->load_state_dict(layers::read_safetensors(path).tensors);
    resumed[static_cast<std::size_t>(group.rank())] = trace_of(run, {});
  });
  for (std::size_t rank = 0; rank < 2; ++rank) check_same_end(resumed[rank], whole[rank]);

  comm::ProcessGroup one(comm::make_self_backend());
  Run run(settings, one, 51);
  run.trainer->load_state_dict(layers::read_safetensors(path).tensors);
  const Trace alone = trace_of(run, {});
  CHECK(alone.losses.size() == 3);
  CHECK(alone.state.at("trainer.steps") == whole[0].state.at("trainer.steps"));
  if (settings.local) return;
  // The orders of sums are all that differs: some roundings of f32 over three steps.
  CHECK(alone.last.train_loss == Approx(whole[0].last.train_loss).epsilon(1e-5));
  for (std::size_t i = 0; i < 3; ++i) {
    CAPTURE(i);
    CHECK(alone.losses[i] == Approx(whole[0].losses[whole[0].losses.size() - 3 + i]).epsilon(1e-5));
  }
}

TEST_CASE("a state that lacks an entry, has one too many or is of another run changes nothing") {
  comm::ProcessGroup group(comm::make_self_backend());
  Run run({.dtype = DType::f16, .init_scale = 1024.0, .ema = 0.9}, group);
  run.trainer->fit(1);
  NamedTensors good;
  for (const auto& [name, tensor] : run.trainer->state_dict()) good.emplace_back(name, tensor.detach().clone());

  Run other({.dtype = DType::f16, .init_scale = 512.0, .ema = 0.9}, group, 2);
  const auto snapshot = [&] {
    std::map<std::string, std::vector<double>> values;
    for (const auto& [name, tensor] : other.trainer->state_dict())
      values[name] = autograd::cast(tensor, DType::f64).to_vector<double>();
    return values;
  };
  const auto before = snapshot();
  const auto refused = [&](const NamedTensors& state) {
    const std::string error = error_of([&] { other.trainer->load_state_dict(state); });
    CHECK(snapshot() == before);
    return error;
  };
  for (std::size_t i = 0; i < good.size(); ++i) {
    NamedTensors state = good;
    const std::string name = state[i].first;
    CAPTURE(name);
    state.erase(state.begin() + static_cast<std::ptrdiff_t>(i));
    // A parameter without a step count was never updated, which is in order; then its moments are too many.
    CHECK(!refused(state).empty());
    state = good;
    state.emplace_back(name, state[i].second);
    CHECK_THAT(refused(state), ContainsText("the state has two entries " + name));
    state = good;
    state[i].second = Tensor();
    CHECK(!refused(state).empty());
  }
  const auto with = [&](const std::string& name, const Tensor& tensor) {
    NamedTensors state = good;
    for (auto& [own, value] : state) {
      if (own == name) value = tensor;
    }
    if (std::none_of(good.begin(), good.end(), [&](const auto& entry) { return entry.first == name; }))
      state.emplace_back(name, tensor);
    return state;
  };
  const auto number = [](std::int64_t value) { return Tensor::from<std::int64_t>({value}, {}); };
  CHECK_THAT(refused({}), ContainsText("the state has no trainer.seed: it is no Trainer's state_dict()"));
  CHECK_THAT(refused(with("weights", number(1))), ContainsText("has an entry weights, which no Trainer writes"));
  CHECK_THAT(refused(with("trainer.ema", number(1))), ContainsText("has an entry trainer.ema, which this Trainer"));
  CHECK_THAT(refused(with("model.ema", number(1))), ContainsText("unexpected: ema"));
  CHECK_THAT(refused(with("trainer.global_batch_size", number(64))),
             ContainsText("is of a run with a global batch size of 64, and this one has 8: set it to 64, or load"));
  CHECK_THAT(refused(with("trainer.seed", number(8))), ContainsText("is of a run with the seed 8, and this one has 7"));
  CHECK_THAT(refused(with("trainer.epoch_steps", number(5))), ContainsText("is 5, which is not in [0, 4]"));
  CHECK_THAT(refused(with("trainer.steps", number(-1))), ContainsText("trainer.steps of the state is -1"));
  CHECK_THAT(refused(with("trainer.epoch_sums", Tensor::zeros({1, 3}, {.dtype = DType::f64}))),
             ContainsText("trainer.epoch_sums of the state must be f64[ranks, 4], for the loss and 1 metrics"));
  CHECK_THAT(refused(with("trainer.epoch_sums", Tensor::zeros({0, 4}, {.dtype = DType::f64}))),
             ContainsText("trainer.epoch_sums of the state must be f64[ranks, 4]"));
  for (const double value : {-1.0, 0.5, 1e300, std::nan(""), std::numeric_limits<double>::infinity()})
    CHECK_THAT(refused(with("trainer.epoch_sums", Tensor::from<double>({0.0, 1.0, value, 0.0}, {1, 4}))),
               ContainsText("in the place of a count of images"));
  CHECK_THAT(refused(with("trainer.epochs", Tensor::zeros({}))),
             ContainsText("trainer.epochs of the state must be one"));
  other.trainer->load_state_dict(good);
  CHECK(snapshot() != before);
}

TEST_CASE("ranks that are given different states say so", "[threads]") {
  std::vector<std::string> errors(2);
  run_thread_ranks(2, [&](comm::ProcessGroup& group) {
    Run run({}, group);
    NamedTensors state;
    for (const auto& [name, tensor] : run.trainer->state_dict()) state.emplace_back(name, tensor.detach().clone());
    if (group.rank() == 1) state.front().second = Tensor::zeros(state.front().second.shape());
    errors[static_cast<std::size_t>(group.rank())] = error_of([&] { run.trainer->load_state_dict(state); });
  });
  for (const std::string& error : errors)
    CHECK_THAT(error, ContainsText("the trainer's state differs between ranks: model.0.weight is"));
}
