// Training steps of a larger network, timed on a network that is simulated: with the exchange of gradients behind the
// backward pass, and beside it.
#pragma once

#include "tandem/train/report/read_step.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::sgd_lab {

/// How gradients are exchanged. Times are medians over ranks and steps, in seconds.
struct ExchangeWay {
  std::vector<std::int64_t> bucket_bytes;  ///< in the order of the exchange
  double step = 0.0;
  double window = 0.0;               ///< from when the first bucket was full to the end of the backward pass
  double exchange = 0.0;             ///< from then to the last average
  double waited = 0.0;               ///< behind the backward pass, for the last average
  train::report::StepTrace picture;  ///< of one more step
};

struct TimedSteps {
  int ranks = 0, turns = 0;
  std::string network;  ///< its words
  std::int64_t weights = 0, batch = 0, layers = 0;
  double compute = 0.0;  ///< a step of as many ranks at once that exchange nothing: a median, in seconds
  ExchangeWay behind;    ///< one bucket, which is full when the backward pass ends
  ExchangeWay beside;    ///< a bucket for every two layers
};

/// A step in each way in turn, again and again. Each rank is a thread, and of the simulated network a host.
TimedSteps time_steps(int ranks, std::string_view network);

/// Ranks that can be timed at once on this machine: its cores, at most 8 and at least 2.
int most_timed_ranks();

}  // namespace tandem::sgd_lab
