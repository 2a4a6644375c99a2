// A row for each algorithm.
#include "tandem/comm/schedules/all_reduce_algorithms.h"

#include "tandem/core/error.h"
#include "tandem/core/suggest.h"

#include <algorithm>

namespace tandem::comm {

namespace {

template <Schedule (*Make)(int)>
Schedule of_ranks(std::span<const int> node_of_rank) {
  return Make(static_cast<int>(node_of_rank.size()));
}

constexpr AllReduceAlgorithm kAlgorithms[] = {
    {"ring", "chunks go round twice; fewest bytes, any number of ranks", of_ranks<ring_all_reduce>},
    {"recursive-doubling", "all data to a partner, log2 N times; for small data", of_ranks<recursive_doubling>},
    {"halving-doubling", "halves to a partner, and back; fewest bytes in few rounds", of_ranks<halving_doubling>},
    {"double-tree", "halves of the data up and down two binary trees", of_ranks<double_binary_tree>},
    {"direct", "each rank combines a chunk of all others", of_ranks<direct_all_reduce>},
    {"two-level", "within each host, then a ring of hosts", two_level_all_reduce},
};

}  // namespace

std::span<const AllReduceAlgorithm> all_reduce_algorithms() { return kAlgorithms; }

const AllReduceAlgorithm& all_reduce_algorithm(std::string_view name) {
  const auto found = std::ranges::find(kAlgorithms, name, &AllReduceAlgorithm::name);
  if (found != std::end(kAlgorithms)) return *found;
  std::vector<std::string> names;
  for (const AllReduceAlgorithm& algorithm : kAlgorithms) names.emplace_back(algorithm.name);
  fail("{}", unknown_name("all-reduce algorithm", name, names));
}

}  // namespace tandem::comm
