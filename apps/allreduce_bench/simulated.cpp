// One engine of the native backend for each rank, polled in turn.
#include "apps/allreduce_bench/simulated.h"

#include "apps/allreduce_bench/groups.h"
#include "apps/allreduce_bench/values.h"
#include "tandem/comm/backends/native/native_engine.h"
#include "tandem/comm/cost/network_costs.h"
#include "tandem/comm/cost/predict.h"
#include "tandem/comm/schedules/all_reduce_algorithms.h"
#include "tandem/comm/transports/simulated/virtual_network.h"
#include "tandem/core/out.h"

#include <algorithm>
#include <memory>
#include <vector>

namespace tandem::allreduce_bench {

namespace {

using SharedSchedule = std::shared_ptr<const comm::Schedule>;

/// Seconds of one all-reduce, in place.
double simulate(const comm::NetworkModel& model, const SharedSchedule& schedule, const std::vector<Tensor>& tensors,
                comm::ReduceOp op) {
  comm::VirtualNetwork network(model);
  std::vector<std::unique_ptr<comm::NativeEngine>> engines;
  std::vector<std::shared_ptr<comm::NativeOperation>> operations;
  for (int rank = 0; rank < model.ranks(); ++rank) {
    engines.push_back(
        std::make_unique<comm::NativeEngine>(network.transport(rank), model.ranks(), rank, comm::Schedule{}));
    engines.back()->set_all_reduce({{0, schedule}});  // one for all: it has the steps of every rank
  }
  for (std::size_t rank = 0; rank < engines.size(); ++rank) {
    void* const data = Out(tensors[rank]).raw_data();
    operations.push_back(engines[rank]->start({.kind = comm::CollectiveKind::all_reduce,
                                               .dtype = tensors[rank].dtype(),
                                               .op = op,
                                               .counts = {tensors[rank].numel()},
                                               .input = data,
                                               .output = data,
                                               .input_owner = tensors[rank],
                                               .output_owner = tensors[rank]}));
  }
  return comm::run_ranks(network, model.ranks(), [&](int rank) {
    const auto index = static_cast<std::size_t>(rank);
    engines[index]->poll();
    return engines[index]->is_complete(*operations[index]);
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
      for (const Tensor& tensor : tensors) row.wrong += count_wrong(tensor, expected, model.ranks(), options.op);
      show(row);
    }
  }
}

}  // namespace tandem::allreduce_bench
