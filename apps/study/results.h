// The figures of a study's runs, point by point.
#pragma once

#include "apps/study/measure.h"
#include "apps/study/memory.h"
#include "apps/study/plan.h"
#include "apps/study/statistics.h"

#include <cstddef>
#include <string>
#include <vector>

namespace tandem::study {

struct SeedResult {
  int seed = 1;
  KeptRun run;
  std::vector<double> values;  ///< one for each measure of the study; NaN where there is none
};

struct PointResult {
  std::size_t point = 0;     ///< of the plan
  std::size_t baseline = 0;  ///< of the plan, too
  std::vector<SeedResult> seeds = {};
  std::vector<Sample> samples = {};  ///< one for each measure
  /// Where the study shows the best alone: of best-by, the larger, the better. NaN: it has none, or a seed diverged or
  /// failed, so that it cannot be the best.
  double best_figure = train::report::kMissing;
};

struct Results {
  Plan plan;
  std::vector<const Measure*> measures;
  std::vector<PointResult> points;  ///< all of them, in the plan's order
  std::vector<std::size_t> shown;   ///< indices into `points`: those that are best, where the study asks for them
};

/// Values, samples and what is shown, of runs that were found: `kept` is one for each run of the plan.
Results make_results(const Plan& plan, std::vector<KeptRun> kept);

/// The same, found below `runs`.
Results collect(const std::string& runs, const Plan& plan);

}  // namespace tandem::study
