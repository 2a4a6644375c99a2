// What can be measured of a run.
#pragma once

#include "tandem/train/plot/ticks.h"
#include "tandem/train/report/run_data.h"

#include <cstdint>
#include <string_view>

namespace tandem::study {

enum class Better : std::uint8_t { higher, lower, neither };

struct Measure {
  std::string_view name;   ///< in study files and tables for programs: "test_accuracy"
  std::string_view title;  ///< in tables for people: "test accuracy"
  train::plot::Unit unit = train::plot::Unit::none;
  Better better = Better::neither;
  /// Of a run; `baseline` is the run of the same seed that it is held against, or null. kMissing where it has none.
  double (*value)(const train::report::RunData& run, const train::report::RunData* baseline) = nullptr;
  ///< null: it is the figure of a bench that has the measure's name
  double train::report::Epoch::* curve = nullptr;  ///< the same of each epoch; null: there is no such curve
};

/// Throws Error for an unknown name, suggesting the nearest.
const Measure& find_measure(std::string_view name);

}  // namespace tandem::study
