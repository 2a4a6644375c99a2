// Studies and results that no program has made.
#pragma once

#include "apps/study/memory.h"
#include "apps/study/plan.h"
#include "apps/study/results.h"
#include "apps/study/study_file.h"

#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace tandem::test {

inline std::vector<std::string> some_options(const std::string& /*program*/) {
  return {"epochs",  "lr",         "batch-size", "optimizer",   "model",
          "dataset", "batch-norm", "dropout",    "limit-train", "min-bytes"};
}

/// Of a file "tests/some.toml".
inline study::Study study_of(const std::string& text) {
  return study::parse_study(text, "tests/some.toml", some_options);
}

/// A run that came to its end in two epochs, with this accuracy and time.
inline study::KeptRun finished_run(double accuracy, double seconds) {
  study::KeptRun kept{study::RunOutcome::finished, "runs/x", "", train::report::RunData()};
  train::report::RunData& data = *kept.data;
  data.state = train::report::RunState::finished;
  data.sessions = 1;
  data.total_seconds = seconds;
  data.device = "cpu";
  for (const int number : {1, 2}) {
    train::report::Epoch epoch;
    epoch.epoch = number;
    epoch.train_loss = 2.0 / number;
    epoch.train_accuracy = accuracy + 10.0;
    epoch.test_accuracy = number == 2 ? accuracy : accuracy / 2.0;
    epoch.seconds = seconds / 2.0;
    epoch.images_per_second = 1000.0 / seconds;
    epoch.peak_memory_bytes = 1e6;
    data.epochs.push_back(epoch);
  }
  return kept;
}

inline study::KeptRun diverged_run(double accuracy) {
  study::KeptRun kept = finished_run(accuracy, 1.0);
  kept.outcome = study::RunOutcome::diverged;
  kept.reason = "the loss of step 7 is not a finite number";
  kept.data->state = train::report::RunState::diverged;
  return kept;
}

inline study::KeptRun failed_run(const std::string& reason) { return {study::RunOutcome::failed, "runs/x", reason}; }

/// `runs`: for each point of the study, in its order, a run for each seed.
inline study::Results results_of(const study::Study& study, const std::vector<std::vector<study::KeptRun>>& runs) {
  study::PlanOptions options;
  options.seeds = static_cast<int>(runs.front().size());
  const study::Plan plan = study::make_plan(study, options);
  std::vector<study::KeptRun> kept;
  for (const study::PlannedRun& run : plan.runs)
    kept.push_back(runs.at(run.point).at(static_cast<std::size_t>(run.seed - 1)));
  return study::make_results(plan, std::move(kept));
}

}  // namespace tandem::test
