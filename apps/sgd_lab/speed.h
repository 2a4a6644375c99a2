// What more ranks would gain, by the costs of messages (comm/cost/).
#pragma once

#include "apps/sgd_lab/timing.h"
#include "tandem/comm/cost/speed_up.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tandem::sgd_lab {

/// Seconds that ranks on hosts of their own exchange gradients of f32 in each step, for some networks and models.
struct SpeedGrid {
  std::vector<double> gigabits;      ///< per second, between hosts
  std::vector<double> microseconds;  ///< of latency
  std::vector<std::int64_t> weights;
  std::vector<int> ranks;        ///< 1, 2, 4 ... 64
  std::vector<double> exchange;  ///< seconds, [gigabits][microseconds][weights][ranks] one after another

  std::size_t index(std::size_t gigabit, std::size_t microsecond, std::size_t weight, std::size_t rank) const {
    return ((gigabit * microseconds.size() + microsecond) * weights.size() + weight) * ranks.size() + rank;
  }
};

/// By predict_speed_ups(): the fastest algorithm of candidate_algorithms(), and no computing meanwhile.
SpeedGrid make_speed_grid();

/// Images per second beside those of one rank, where each computes for `compute` seconds and then exchanges.
inline double speed_up(int ranks, double compute, double exchange) { return ranks * compute / (compute + exchange); }

/// An all-reduce of all gradients, carried out by as many ranks on a virtual clock.
struct VirtualExchange {
  int ranks = 0;
  std::string algorithm;
  double seconds = 0.0;    ///< by the clock
  double predicted = 0.0;  ///< by the costs of messages
};

/// Predicted for the network of the timed steps, by what a step of the first of these computes; all but the measured
/// ones for 1, 2, 4 ... 64 ranks.
struct SpeedUps {
  std::vector<comm::SpeedUp> behind, beside;       ///< by predict_speed_ups()
  std::vector<VirtualExchange> virtual_exchanges;  ///< from 2 ranks on
};

SpeedUps predict_speed_ups(const TimedSteps& timed);

/// Seconds of a step: what it computes, and waits for.
double predicted_step(const TimedSteps& timed, const ExchangeWay& way);

/// Of steps that were timed: beside as many ranks that exchange nothing.
inline double measured_speed_up(const TimedSteps& timed, const ExchangeWay& way) {
  return timed.ranks * timed.compute / way.step;
}

}  // namespace tandem::sgd_lab
