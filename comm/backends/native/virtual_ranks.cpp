// Engines that are polled whenever a message of theirs has left or arrived.
#include "tandem/comm/backends/native/virtual_ranks.h"

namespace tandem::comm {

VirtualRanks::VirtualRanks(const NetworkModel& model, const std::shared_ptr<const Schedule>& all_reduce,
                           const SegmentOptions& segments)
    : network_(model) {
  for (int rank = 0; rank < model.ranks(); ++rank) {
    auto engine = std::make_unique<NativeEngine>(network_.transport(rank), model.ranks(), rank, Schedule{}, segments);
    engine->set_all_reduce({{0, all_reduce}});  // one for all: it has the steps of every rank
    engines_.push_back(std::move(engine));
  }
}

double VirtualRanks::run(const std::function<Collective(int rank)>& of_rank) {
  std::vector<std::shared_ptr<NativeOperation>> operations;
  for (int rank = 0; rank < size(); ++rank)
    operations.push_back(engines_[static_cast<std::size_t>(rank)]->start(of_rank(rank)));
  return run_ranks(network_, size(), [&](int rank) {
    const auto index = static_cast<std::size_t>(rank);
    engines_[index]->poll();
    return engines_[index]->is_complete(*operations[index]);
  });
}

}  // namespace tandem::comm
