// Figures of runs that no program has made.
#include "apps/study/measure.h"
#include "tests/apps/study_support.h"
#include "tests/support/catch.h"

#include <cmath>
#include <string_view>

using namespace tandem;
using namespace tandem::study;
using train::report::RunData;

namespace {

/// Two ranks, 10 steps per epoch: 0.2 s of forward, 0.3 s of backward, an exchange of 0.4 s; a bare all-reduce takes
/// 0.01 s, a window of the backward pass 0.02 s, of which 0.005 s are left behind it.
RunData two_ranks() {
  RunData run = *test::finished_run(50.0, 1.0).data;
  run.ranks = 2.0;
  run.steps_per_epoch = 10.0;
  for (auto& epoch : run.epochs) {
    epoch.time = {{"forward", 0.2}, {"backward", 0.3}, {"optimizer", 0.1}, {"communication", 0.05}};
    epoch.exchange = {{"steps", 10.0}, {"seconds", 0.4}};
  }
  run.scaling.emplace();
  run.scaling->window_seconds = 0.02;
  run.scaling->of = {{1.0, 0.0, 0.0, 1.0}, {2.0, 0.01, 0.005, 1.9}, {4.0, 0.02, 0.01, 3.5}};
  return run;
}

double value(std::string_view measure, const RunData& run) { return find_measure(measure).value(run, nullptr); }

}  // namespace

TEST_CASE("the exchange is predicted over the span that it is measured over, and held against as all-reduces alone") {
  const RunData run = two_ranks();
  CHECK(value("exchange_seconds", run) == Approx(0.04));
  CHECK(value("predicted_exchange_seconds", run) == Approx(0.02 + 0.005));
  CHECK(value("compute_to_exchange", run) == Approx(0.06 / 0.01));
  CHECK(find_measure("exchange_seconds").title == "first bucket to last average, per step");
  RunData alone = run;
  alone.ranks = 1.0;  // it exchanges nothing
  CHECK(std::isnan(value("predicted_exchange_seconds", alone)));
  CHECK(std::isnan(value("compute_to_exchange", alone)));
}

TEST_CASE("what a GPU's log says of phases, which is enqueueing, is no figure") {
  constexpr std::string_view kOfPhases[] = {"forward_seconds",           "backward_seconds", "computing_seconds",
                                            "waiting_seconds",           "exchange_seconds", "compute_to_exchange",
                                            "predicted_exchange_seconds"};
  RunData run = two_ranks();
  for (const std::string_view measure : kOfPhases) {
    INFO(measure);
    run.device = "cpu";
    CHECK(std::isfinite(value(measure, run)));
    run.device = "cuda:0";
    CHECK(std::isnan(value(measure, run)));
  }
  CHECK(value("epoch_seconds", run) == Approx(0.5));  // to the end of the epoch's work
}
