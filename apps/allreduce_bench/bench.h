// All-reduces of several backends, timed by turns.
#pragma once

#include "tandem/comm/launch/mpi_environment.h"
#include "tandem/comm/process_group.h"

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace tandem::apps {

struct BenchOptions {
  std::vector<std::string> backends;
  std::vector<std::string> algorithms = {};  ///< of backend native, beside them: GroupOptions::algorithm
  std::int64_t min_bytes = 4;
  std::int64_t max_bytes = std::int64_t{64} << 20;
  std::int64_t factor = 4;  ///< from one size to the next
  std::int64_t rounds = 9;  ///< in each of which all contenders have their turn
  DType dtype = DType::f32;
  comm::ReduceOp op = comm::ReduceOp::sum;
  /// Measure what messages cost first, predict algorithms of messages by it, and let "by-cost" choose by it.
  bool predicts = false;
};

/// Seconds of one all-reduce: of the slowest rank, over the rounds.
struct BenchTime {
  double median = 0.0;
  double least = 0.0;
};

/// One contender at one size. `shared`: of tensors that all ranks see (ProcessGroup::shared_zeros()).
struct BenchRow {
  std::int64_t bytes = 0;
  std::string backend;  ///< or "native, ring"
  bool shared = false;
  BenchTime out_of_place = {}, in_place = {};
  /// Seconds by what messages cost, of algorithms of messages; 0: not predicted.
  double predicted = 0.0;
  std::string chosen = {};  ///< the algorithm that "by-cost" chose
  std::int64_t wrong = 0;   ///< elements, on all ranks, that are not what they must be to the bit
};

/// Algorithm bandwidth in bytes per second, bytes / seconds; times this it is the bus bandwidth, which does not depend
/// on the number of ranks where a link's speed is the limit: 2(n-1)/n (nccl-tests, doc/PERFORMANCE.md).
double bus_factor(int ranks);

/// How good predictions were, of all-reduces in place of 64 KiB and more.
struct PredictionSummary {
  int count = 0;              ///< of predictions
  double median_error = 0.0;  ///< |predicted / measured - 1|
  /// Of the algorithms that "by-cost" chose, the time beside that of the best algorithm at the same size: the median
  /// and the largest over the sizes, 1 being the best. 0 where it did not choose among algorithms that were measured.
  double median_choice = 0.0, worst_choice = 0.0;
};

PredictionSummary summarize_predictions(std::span<const BenchRow> rows);

/// Runs them, and calls `show` with each row on rank 0. Collective. Throws AgreedError for a backend that these ranks
/// cannot use.
void run_bench(comm::MpiEnvironment& environment, const BenchOptions& options,
               const std::function<void(const BenchRow&)>& show);

}  // namespace tandem::apps
