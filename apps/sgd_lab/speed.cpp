#include "apps/sgd_lab/speed.h"

#include "tandem/comm/backends/native/virtual_ranks.h"
#include "tandem/comm/cost/choose_algorithms.h"
#include "tandem/comm/cost/network_costs.h"
#include "tandem/comm/cost/predict.h"
#include "tandem/core/out.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>

namespace tandem::sgd_lab {

namespace {

constexpr int kMostRanks = 64;

/// By the fastest of the algorithms that "by-cost" chooses from.
VirtualExchange exchange_on(comm::NetworkModel model, int ranks, std::int64_t bytes) {
  model.hosts = ranks;
  const std::vector<int> nodes = model.node_of_rank();
  VirtualExchange best{.ranks = ranks, .algorithm = {}};
  std::shared_ptr<const comm::Schedule> fastest;
  for (auto& [name, schedule] : comm::candidate_algorithms(nodes)) {
    const double seconds = comm::predicted_seconds(schedule, nodes, bytes, comm::costs_of(model));
    if (fastest && seconds >= best.predicted) continue;
    best.algorithm = name;
    best.predicted = seconds;
    fastest = std::make_shared<const comm::Schedule>(std::move(schedule));
  }
  comm::VirtualRanks all(model, fastest);
  std::vector<Tensor> gradients;
  for (int rank = 0; rank < ranks; ++rank) gradients.push_back(Tensor::zeros({bytes / 4}));
  best.seconds = all.run([&](int rank) {
    return comm::in_place(comm::CollectiveKind::all_reduce, Out(gradients[static_cast<std::size_t>(rank)]),
                          comm::ReduceOp::average);
  });
  return best;
}

comm::StepCosts costs_of_step(const TimedSteps& timed, const ExchangeWay& way) {
  return {.seconds = timed.compute, .window = std::min(way.window, timed.compute), .bucket_bytes = way.bucket_bytes};
}

comm::MessageCosts network_costs(const TimedSteps& timed) {
  return comm::costs_of(comm::parse_network_model(timed.network));
}

std::vector<comm::SpeedUp> predict(const TimedSteps& timed, const ExchangeWay& way) {
  return comm::predict_speed_ups(costs_of_step(timed, way), kMostRanks, network_costs(timed));
}

}  // namespace

double predicted_step(const TimedSteps& timed, const ExchangeWay& way) {
  std::vector<int> hosts(static_cast<std::size_t>(timed.ranks));
  std::iota(hosts.begin(), hosts.end(), 0);
  return timed.compute + comm::predict_speed_up(costs_of_step(timed, way), hosts, network_costs(timed)).waited_seconds;
}

SpeedUps predict_speed_ups(const TimedSteps& timed) {
  const comm::NetworkModel model = comm::parse_network_model(timed.network);
  SpeedUps all{predict(timed, timed.behind), predict(timed, timed.beside), {}};
  for (int ranks = 2; ranks <= kMostRanks; ranks *= 2)
    all.virtual_exchanges.push_back(exchange_on(model, ranks, 4 * timed.weights));
  return all;
}

SpeedGrid make_speed_grid() {
  SpeedGrid grid{.gigabits = {1, 2.5, 5, 10, 25, 100},
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
