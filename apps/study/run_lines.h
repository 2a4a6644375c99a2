// What a study can draw of a run as one line: figures of its layers, or of numbers of ranks.
#pragma once

#include "apps/study/study.h"
#include "tandem/train/plot/ticks.h"
#include "tandem/train/report/run_data.h"

#include <string_view>
#include <utility>
#include <vector>

namespace tandem::study {

struct RunLine {
  PlotKind kind;            ///< layers or ranks
  std::string_view name;    ///< "gradient_norm": in place of a measure
  std::string_view title;   ///< "gradient norm of each layer, from the first"
  std::string_view axis;    ///< what x is: "layer with weights"
  std::string_view option;  ///< of runs, by which they log it: "log-norms"; "": they all do
  train::plot::Unit unit;
  bool is_logarithmic;  ///< y
  /// x and y; empty where the run did not log them.
  std::vector<std::pair<double, double>> (*points)(const train::report::RunData&);
};

/// Throws Error for an unknown name, suggesting the nearest of this kind.
const RunLine& find_run_line(PlotKind kind, std::string_view name);

}  // namespace tandem::study
