// What the exchange of gradients took.
#pragma once

#include <cstdint>

namespace tandem::comm {

/// Sums over steps, on one rank. Seconds are those of the host: on a GPU, where an exchange is only enqueued, they are
/// what enqueueing takes, and nothing for steps that are launches of a WorkGraph.
/// DistributedDataParallel::take_totals() gives them. Example:
///     const ExchangeTotals totals{.steps = 2, .bytes = 4096, .seconds = 0.01};
///     const std::int64_t bytes_of_step = totals.bytes / totals.steps;  // 2048
struct ExchangeTotals {
  std::int64_t steps = 0;  ///< that were added up
  std::int64_t bytes = 0;  ///< of buckets that this rank gave to be averaged; what a backend sends for it is its own
  std::int64_t early_bytes = 0;  ///< of these, what this rank knew to be averaged when its backward pass ended
  double seconds = 0.0;  ///< from the first bucket's start to the last one's end, most of it beside the backward pass
  double waited_seconds = 0.0;  ///< behind the backward pass
  /// On one rank, which exchanges nothing, so that all others are 0: from when the first bucket would be full to the
  /// end of the backward pass.
  double window_seconds = 0.0;
};

}  // namespace tandem::comm
