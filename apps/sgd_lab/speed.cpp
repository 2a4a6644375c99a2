#include "apps/sgd_lab/speed.h"

#include "tandem/comm/cost/speed_up.h"

namespace tandem::sgd_lab {

SpeedGrid make_speed_grid() {
  SpeedGrid grid{.gigabits = {1, 10, 100},
                 .microseconds = {5, 25, 100},
                 .weights = {10'000, 100'000, 1'000'000, 10'000'000},
                 .ranks = {1, 2, 4, 8, 16, 32, 64},
                 .exchange = {}};
  comm::MessageCosts costs = comm::usual_message_costs();
  for (const double gigabits : grid.gigabits) {
    for (const double microseconds : grid.microseconds) {
      costs.between_hosts = comm::CostCurve::line(1e-6 * microseconds, 1e9 / 8 * gigabits);
      for (const std::int64_t weights : grid.weights) {
        const comm::StepCosts step{.seconds = 1.0, .window = 0.0, .bucket_bytes = {4 * weights}};
        for (const comm::SpeedUp& speed : comm::predict_speed_ups(step, grid.ranks.back(), costs))
          grid.exchange.push_back(speed.exchange_seconds);
      }
    }
  }
  return grid;
}

}  // namespace tandem::sgd_lab
