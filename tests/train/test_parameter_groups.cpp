// Training with groups of parameters, on one rank and on several.
#include "tests/train/resumed_run.h"

#include "tandem/autograd/variable.h"
#include "tandem/comm/process_group.h"
#include "tests/comm/thread_ranks.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"

using namespace tandem;
using namespace tandem::test;

TEST_CASE("a group is frozen at its step and not before, also where steps were skipped") {
  const Settings settings =
      GENERATE(Settings{.groups = true}, Settings{.dtype = DType::f16, .init_scale = 4e5, .groups = true});
  comm::ProcessGroup group(comm::make_self_backend());
  Run run(settings, group);
  const Tensor weight = run.model.parameters("0.weight").front(), other = run.model.parameters("*.weight").back();
  std::vector<std::vector<double>> frozen{weight.to_vector<double>()}, trained{other.to_vector<double>()};
  std::int64_t skipped = 0;
  const Trace trace = trace_of(run, [&](std::int64_t) {
    frozen.push_back(weight.to_vector<double>());
    trained.push_back(other.to_vector<double>());
  });
  skipped = trace.last.skipped_steps;
  CHECK((skipped > 0) == (settings.init_scale > 0.0));
  REQUIRE(frozen.size() == 9);
  for (std::size_t step = 0; step < 8; ++step) {
    CAPTURE(step);
    const bool was_skipped = trained[step + 1] == trained[step];
    skipped -= was_skipped ? 1 : 0;
    CHECK((frozen[step + 1] != frozen[step]) == (!was_skipped && step < static_cast<std::size_t>(kFreezeStep)));
  }
  CHECK(skipped == 0);
  CHECK_FALSE(autograd::requires_grad(weight));
  CHECK(autograd::requires_grad(other));
}

TEST_CASE("ranks train groups as one rank does", "[threads]") {
  const int ranks = GENERATE(2, 3);
  const Settings settings{.adam = GENERATE(false, true), .local = false, .groups = true};
  comm::ProcessGroup alone(comm::make_self_backend());
  Run single(settings, alone);
  const Trace whole = trace_of(single, {});
  std::vector<Trace> traces(static_cast<std::size_t>(ranks));
  run_thread_ranks(ranks, [&](comm::ProcessGroup& group) {
    Run run(settings, group);
    traces[static_cast<std::size_t>(group.rank())] = trace_of(run, {});
  });
  for (const Trace& trace : traces) {
    CHECK(trace.state == traces.front().state);
    REQUIRE(trace.losses.size() == whole.losses.size());
    // The orders of sums are all that differs: some roundings of f32 over eight steps.
    for (std::size_t i = 0; i < whole.losses.size(); ++i)
      CHECK(trace.losses[i] == Approx(whole.losses[i]).epsilon(1e-5));
  }
}

TEST_CASE("a second trainer of the same parts begins with what the first has frozen", "[threads]") {
  run_thread_ranks(2, [&](comm::ProcessGroup& group) {
    const Settings settings{.local = false, .groups = true};
    Run run(settings, group);
    run.trainer->run({});
    const Tensor weight = run.model.parameters("0.weight").front();
    const std::vector<float> before = weight.to_vector<float>();
    run.trainer.reset();
    train::TrainerOptions options = run.options_of();
    options.check_replicas = true;
    options.epochs = 1;
    train::Trainer second(run.model, *run.optimizer, *run.loader, options);
    CHECK(autograd::requires_grad(weight));
    second.run({});
    CHECK(weight.to_vector<float>() != before);
  });
}

TEST_CASE("ranks with other groups are refused", "[threads]") {
  CHECK_THAT(
      error_of([] {
        run_thread_ranks(2, [](comm::ProcessGroup& group) {
          Run run({.local = false}, group);
          run.optimizer->add_group({.parameters = run.model.parameters("*.bias"), .lr_factor = 1.0 + group.rank()});
          const train::Trainer other(run.model, *run.optimizer, *run.loader, run.options_of());
        });
      }),
      ContainsText("group 0 is 2 parameters, lr_factor 1 on rank 0 and 2 parameters, lr_factor 2"));
}
