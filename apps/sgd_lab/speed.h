// What more ranks would gain, by the costs of messages (comm/cost/).
#pragma once

#include <cstddef>
#include <cstdint>
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

/// By predict_speed_ups(): the fastest algorithm, and no computing meanwhile.
SpeedGrid make_speed_grid();

/// Images per second beside those of one rank, where each computes for `compute` seconds and then exchanges.
inline double speed_up(int ranks, double compute, double exchange) { return ranks * compute / (compute + exchange); }

}  // namespace tandem::sgd_lab
