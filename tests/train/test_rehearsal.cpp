// Steps that are taken before a run and taken back.
#include "tandem/autograd/variable.h"
#include "tandem/comm/process_group.h"
#include "tandem/train/state_copy.h"
#include "tests/comm/thread_ranks.h"
#include "tests/support/error_of.h"
#include "tests/train/resumed_run.h"

using namespace tandem;
using namespace tandem::test;

namespace {

/// The same run with and without a rehearsal, on this rank.
void check_rehearsed(const Settings& settings, comm::ProcessGroup& group, std::int64_t steps) {
  Run plain(settings, group), rehearsed(settings, group);
  int reports = 0;
  const double lr = rehearsed.optimizer->lr();
  rehearsed.trainer->rehearse(steps);
  CHECK(rehearsed.optimizer->lr() == lr);
  CHECK(rehearsed.trainer->steps_done() == 0);
  CHECK(rehearsed.optimizer->steps() == 0);
  const Trace expected = trace_of(plain, {}), trace = trace_of(rehearsed, [&](std::int64_t) { ++reports; });
  CHECK(reports == static_cast<int>(expected.losses.size()));
  CHECK(trace.losses == expected.losses);
  check_same_end(trace, expected);
}

}  // namespace

TEST_CASE("a run that was rehearsed has the bits of one that was not") {
  const std::int64_t steps = GENERATE(2, 100);  // an epoch has four at most
  const Settings settings =
      GENERATE(Settings{}, Settings{.adam = true, .dtype = DType::bf16}, Settings{.accumulation = 3},
               Settings{.dtype = DType::f16, .init_scale = 4e5}, Settings{.stream = true},
               Settings{.ema = 0.9, .groups = true}, Settings{.dtype = DType::f16, .init_scale = 4e5, .lookahead = 2});
  CAPTURE(steps, settings.adam, settings.accumulation, name_of(settings.dtype), settings.stream, settings.groups);
  comm::ProcessGroup group(comm::make_self_backend());
  check_rehearsed(settings, group, steps);
}

TEST_CASE("three ranks rehearse together", "[threads]") {
  constexpr int kRanks = 3;  // of two, sums would not show the order of gradients
  std::vector<Trace> plain(kRanks), rehearsed(kRanks);
  for (std::vector<Trace>* const traces : {&plain, &rehearsed}) {
    run_thread_ranks(kRanks, [&](comm::ProcessGroup& group) {
      Run run({.local = false}, group);
      if (traces == &rehearsed) run.trainer->rehearse(3);
      (*traces)[static_cast<std::size_t>(group.rank())] = trace_of(run, {});
    });
  }
  for (std::size_t rank = 0; rank < kRanks; ++rank) {
    CHECK(rehearsed[rank].losses == plain[rank].losses);
    check_same_end(rehearsed[rank], plain[rank]);
    REQUIRE((rehearsed[rank].last.exchange && plain[rank].last.exchange));
    CHECK(rehearsed[rank].last.exchange->steps == plain[rank].last.exchange->steps);
  }
}

TEST_CASE("a run that goes on in the middle of an epoch can be rehearsed, and frozen layers stay frozen") {
  comm::ProcessGroup group(comm::make_self_backend());
  const Settings settings{.adam = true, .groups = true};
  Run whole(settings, group);
  NamedTensors state;
  constexpr std::int64_t kLeft = kFreezeStep + 1;
  const Trace expected = trace_of(whole, [&](std::int64_t step) {
    if (step == kLeft) state = train::clones_of(whole.trainer->state_dict());
  });
  Run resumed(settings, group, 99);
  resumed.trainer->load_state_dict(state);
  resumed.trainer->set_epoch_seconds(123.0);
  resumed.trainer->rehearse(2);
  CHECK(resumed.trainer->epoch_seconds() == 123.0);
  CHECK(resumed.trainer->steps_done() == kLeft);
  CHECK_FALSE(autograd::requires_grad(resumed.model.parameters("0.weight")[0]));
  const Trace trace = trace_of(resumed, {});
  CHECK(trace.losses.size() == static_cast<std::size_t>(kEpochs * 4 - kLeft));
  check_same_end(trace, expected);
}

TEST_CASE("a trainer that has no length yet can be rehearsed, at a rate that the program has set") {
  comm::ProcessGroup group(comm::make_self_backend());
  const Settings settings{.lookahead = 2};
  Run plain(settings, group), rehearsed(settings, group);
  for (Run* const run : {&plain, &rehearsed}) {
    train::TrainerOptions options = run->options_of();
    options.epochs = 0;
    train::Trainer trainer(run->model, *run->optimizer, *run->loader, options);
    run->optimizer->set_lr(0.02);
    if (run == &rehearsed) trainer.rehearse(3);
    CHECK(run->optimizer->lr() == 0.02);
    trainer.fit(1);
  }
  const auto weights_of = [](const Run& run) { return run.model.parameters()[0].to_vector<float>(); };
  CHECK(weights_of(rehearsed) == weights_of(plain));
}

TEST_CASE("a rehearsal has 0 steps or more") {
  comm::ProcessGroup group(comm::make_self_backend());
  Run run({}, group);
  CHECK_THAT(error_of([&] { run.trainer->rehearse(-1); }), ContainsText("a rehearsal takes 0 steps or more, got -1"));
}
