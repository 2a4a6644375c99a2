// A group of simulated ranks for each row.
#include "apps/allreduce_bench/simulated.h"

#include "apps/allreduce_bench/groups.h"
#include "apps/allreduce_bench/values.h"
#include "tandem/comm/backends/native/virtual_ranks.h"
#include "tandem/comm/cost/choose_algorithms.h"
#include "tandem/comm/cost/network_costs.h"
#include "tandem/comm/cost/predict.h"
#include "tandem/comm/schedules/all_reduce_algorithms.h"
#include "tandem/core/out.h"

#include <algorithm>
#include <memory>
#include <vector>

namespace tandem::allreduce_bench {

namespace {

/// Seconds of one all-reduce, in place.
double simulate(const comm::NetworkModel& model, const std::shared_ptr<const comm::Schedule>& schedule,
                const std::vector<Tensor>& tensors, comm::ReduceOp op) {
  comm::VirtualRanks ranks(model, schedule);
  return ranks.run([&](int rank) {
    return comm::in_place(comm::CollectiveKind::all_reduce, Out(tensors[static_cast<std::size_t>(rank)]), op);
  });
}

/// The algorithm that goes for so many bytes.
std::string chosen_algorithm(const std::vector<comm::AlgorithmChoice>& choices, std::int64_t bytes) {
  std::string chosen;
  for (const comm::AlgorithmChoice& choice : choices)
    if (choice.from_bytes <= bytes) chosen = choice.algorithm;
  return chosen;
}

}  // namespace

void run_simulated_bench(const BenchOptions& options, const std::function<void(const BenchRow&)>& show) {
  const comm::NetworkModel& model = options.network.value();
  const comm::MessageCosts costs = comm::costs_of(model);
  const std::vector<int> nodes = model.node_of_rank();
  // Making all schedules takes long for many ranks.
  const auto choices = std::ranges::count(options.algorithms, comm::kByCost) > 0 ? comm::choose_algorithms(nodes, costs)
                                                                                 : std::vector<comm::AlgorithmChoice>();
  const BenchCollective& collective = *options.collectives.front();
  for (const std::int64_t count : part_sizes(collective, options.min_bytes, options.max_bytes, options.factor,
                                             model.ranks(), size_of(options.dtype))) {
    std::vector<Tensor> tensors;
    for (int rank = 0; rank < model.ranks(); ++rank)
      tensors.push_back(Tensor::empty({count}, {.dtype = options.dtype}));
    for (const std::string& name : options.algorithms) {
      BenchRow row{.collective = &collective,
                   .bytes = count * size_of(options.dtype),
                   .backend = std::string(kAlgorithmOf) + name};
      if (name == comm::kByCost) row.chosen = chosen_algorithm(choices, row.bytes);
      const auto schedule = std::make_shared<const comm::Schedule>(
          comm::all_reduce_algorithm(row.chosen.empty() ? name : row.chosen).make(nodes));
      for (int rank = 0; rank < model.ranks(); ++rank)
        fill_input(tensors[static_cast<std::size_t>(rank)], rank, options.op);
      const double seconds = simulate(model, schedule, tensors, options.op);
      row.in_place = BenchTime{seconds, seconds};
      row.predicted = comm::predicted_seconds(*schedule, nodes, row.bytes, costs);
      const std::vector<ExpectedPart> expected = collective.expected({0, model.ranks(), count});
      row.wrong = count_wrong(tensors, expected, model.ranks(), options.op);
      show(row);
    }
  }
}

}  // namespace tandem::allreduce_bench
