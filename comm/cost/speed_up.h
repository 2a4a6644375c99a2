// What data-parallel training gains by more ranks: from what a step computes, and what messages cost.
// Example:
//     const StepCosts step{.seconds = 0.010, .window = 0.006, .bucket_bytes = {1 << 20, 4 << 20}};
//     const std::vector<int> hosts{0, 1, 2, 3};  // a rank on each
//     const SpeedUp gain = predict_speed_up(step, hosts, usual_message_costs());
//     const double images = gain.factor;  // per second, beside one rank's
#pragma once

#include "tandem/comm/cost/message_costs.h"

#include <cstdint>
#include <span>
#include <vector>

namespace tandem::comm {

/// A training step of one rank, which has the same images however many ranks there are.
struct StepCosts {
  double seconds = 0.0;  ///< all that is not waiting for other ranks
  /// Seconds of it in which gradients can be exchanged meanwhile: from when the first bucket is full to the end of the
  /// backward pass, when the last one is.
  double window = 0.0;
  std::vector<std::int64_t> bucket_bytes = {};  ///< in the order in which they are exchanged
};

/// What is predicted for a number of ranks.
struct SpeedUp {
  int ranks = 1;                  ///< how many
  double exchange_seconds = 0.0;  ///< of all of a step's all-reduces, where they begin at once
  double waited_seconds = 0.0;    ///< of these, what is left behind the backward pass
  double factor = 1.0;            ///< images per second, beside those of one rank: `ranks` if nothing is waited for
};

/// Buckets are taken to be full one after another within the window, by their bytes, and to be exchanged each by the
/// fastest algorithm: their bytes one after another, the latency of one, which is what an all-reduce of a byte takes,
/// beside the bytes of others. Exchanging is taken to need none of the time in which a rank computes. `node_of_rank` is
/// that of predicted_seconds(). Throws Error for times below 0, for a window that is longer than the step, and for
/// sizes below 0.
SpeedUp predict_speed_up(const StepCosts& step, std::span<const int> node_of_rank, const MessageCosts& costs);

/// The same for each power of two up to `most` ranks, each on a host of its own.
std::vector<SpeedUp> predict_speed_ups(const StepCosts& step, int most, const MessageCosts& costs);

}  // namespace tandem::comm
