// How long all-reduces by messages should take, and how good such predictions were.
#pragma once

#include "apps/allreduce_bench/groups.h"
#include "tandem/comm/cost/message_costs.h"

#include <span>
#include <vector>

namespace tandem::allreduce_bench {

/// Predictions by what messages cost between these ranks.
class Predictor {
 public:
  /// Collective. Measures it, and has the groups choose by it; on a simulated network they know it.
  explicit Predictor(const std::vector<NamedGroup>& groups);
  /// Fills in what is predicted of an all-reduce by this group.
  void predict(BenchRow& row, const NamedGroup& named) const;

 private:
  std::vector<int> nodes_;
  comm::MessageCosts costs_;
};

/// How good predictions were, of all-reduces in place of 64 KiB and more.
struct PredictionSummary {
  int count = 0;              ///< of predictions
  double median_error = 0.0;  ///< |predicted / measured - 1|
  /// Of the algorithms that "by-cost" chose, the time beside that of the best algorithm at the same size: the median
  /// and the largest over the sizes, 1 being the best. 0 where it did not choose among algorithms that were measured.
  double median_choice = 0.0, worst_choice = 0.0;
};

PredictionSummary summarize_predictions(std::span<const BenchRow> rows);

/// That as text, and what "by-cost" chose for which sizes; empty where nothing was predicted.
std::string prediction_lines(std::span<const BenchRow> rows);

}  // namespace tandem::allreduce_bench
