// What the page and the terminal show of each group.
#pragma once

#include "tandem/train/plot/ticks.h"
#include "tandem/train/report/comparison.h"

#include <string>
#include <vector>

namespace tandem::train::report {

struct Figure {
  const char* title;
  double Epoch::* field;
  plot::Unit unit;
};

/// Those that some run has.
std::vector<Figure> figures_of(const std::vector<RunGroup>& groups);

/// Of each run's last epoch that has them.
struct ResultTable {
  std::vector<std::string> names;  ///< of columns; the first one has the groups' names, the others numbers
  std::vector<std::vector<std::string>> rows;
};

/// Where a group on several ranks has one on one rank beside it, else with the same settings, the last column is the
/// measured speed-up.
ResultTable results_of(const std::vector<RunGroup>& groups, const std::vector<Figure>& figures);

/// For a terminal of so many columns; 0: of any width. What is too wide for it gets heads of two lines, shorter names,
/// and at last fewer columns; what cannot be shorter stays wider.
std::string table_text(const ResultTable& table, int columns);

}  // namespace tandem::train::report
