// Several runs on one page.
#pragma once

#include "tandem/train/plot/line_chart.h"
#include "tandem/train/report/run_data.h"

#include <string>
#include <vector>

namespace tandem::train::report {

/// The page of one run.
std::string report_page(const RunData& run);

/// Runs with the same settings, but for the seed and for what does not affect the result (RunData::without_effect, of
/// any of them).
struct RunGroup {
  std::string name;                  ///< what it differs by from the others, or the run's own name
  std::vector<const RunData*> runs;  ///< one or more, of different seeds
  /// Those of a seed that is among `runs`: they say nothing of how far seeds differ, and do not count.
  std::vector<const RunData*> repeated;
};

/// In the order of their first runs, which must outlive the groups.
std::vector<RunGroup> group_runs(const std::vector<RunData>& runs);

/// Mean and standard deviation (of a sample; 0 of one value) of the finite ones of these values; where all are the
/// same, exactly that value and 0.
struct Spread {
  double mean = kMissing, deviation = 0.0;
  std::size_t count = 0;
};
Spread spread_of(const std::vector<double>& values);

/// The mean of a figure over the runs of a group, epoch by epoch, with a band of one standard deviation where there are
/// several; in the colour of this number, without a name.
plot::Series pooled(const RunGroup& group, std::size_t index, double Epoch::* figure);

/// Names of settings that are not the same in all groups, sorted as the settings of the first run that has them.
std::vector<std::string> differing_settings(const std::vector<RunGroup>& groups);

/// The results as a table for a terminal of so many columns (0: of any width): names, and a line for each group.
std::string comparison_text(const std::vector<RunData>& runs, int columns = 0);

std::string comparison_page(const std::vector<RunData>& runs);

}  // namespace tandem::train::report
