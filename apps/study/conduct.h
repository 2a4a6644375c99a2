// Runs what is not done of some studies.
#pragma once

#include "apps/study/estimate.h"
#include "apps/study/plan.h"

#include <functional>
#include <string>
#include <vector>

namespace tandem::study {

/// A run that is to be made.
struct Task {
  std::size_t plan = 0;  ///< of several
  PlannedRun run;
  double estimate = 0.0;  ///< seconds; NaN: not known
};

/// Those that are not done, in the order of the plans; the same settings and seed once.
std::vector<Task> tasks_of(const std::vector<Plan>& plans, const std::string& runs, Estimator& estimator);

struct ConductOptions {
  std::string runs;              ///< the folder of run directories
  double timeout_seconds = 0.0;  ///< of a run; 0: by its estimate
  std::function<bool()> stop;
  std::function<void(const std::string& line)> tell;
  std::function<void()> plan_is_done;  ///< before another plan begins
};

/// Makes them one after the other, and tells of each how it went and how long the rest takes. What fails is told, and
/// keeps nothing from the others. Returns whether it came to its end: false where it was stopped.
bool conduct(const std::vector<Plan>& plans, const std::vector<Task>& tasks, const ConductOptions& options);

}  // namespace tandem::study
