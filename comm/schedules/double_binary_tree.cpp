// Two binary trees over the same ranks, one for each half of the data.
#include "tandem/comm/schedules/algorithms.h"
#include "tandem/comm/schedules/schedule_builder.h"

#include <algorithm>
#include <vector>

namespace tandem::comm {

namespace {

/// A tree in which odd labels are leaves: label 0 is the root, and the lowest bit that is set in a label gives its
/// level.
int parent_label(int label, int ranks) {
  if (label == 0) return -1;
  const int bit = label & -label;
  const int parent = (label ^ bit) | (bit << 1);
  return parent < ranks ? parent : label ^ bit;
}

/// Parents of all ranks; -1 for the root. In the second tree, labels are such that leaves of the first have children.
std::vector<int> parents_of(int ranks, bool second) {
  const auto label_of = [=](int rank) {
    if (!second) return rank;
    return ranks % 2 == 0 ? ranks - 1 - rank : (rank + ranks - 1) % ranks;
  };
  const auto rank_of = [=](int label) {
    if (!second) return label;
    return ranks % 2 == 0 ? ranks - 1 - label : (label + 1) % ranks;
  };
  std::vector<int> parents;
  for (int rank = 0; rank < ranks; ++rank) {
    const int parent = parent_label(label_of(rank), ranks);
    parents.push_back(parent < 0 ? -1 : rank_of(parent));
  }
  return parents;
}

int depth_of(const std::vector<int>& parents, int rank) {
  int depth = 0;
  for (int at = rank; parents[static_cast<std::size_t>(at)] >= 0; at = parents[static_cast<std::size_t>(at)]) ++depth;
  return depth;
}

/// One chunk up the tree and down again, from the deepest level on.
void add_tree(ScheduleBuilder& schedule, const std::vector<int>& parents, int chunk) {
  const int ranks = static_cast<int>(parents.size());
  int deepest = 0;
  for (int rank = 0; rank < ranks; ++rank) deepest = std::max(deepest, depth_of(parents, rank));
  for (int rank = 0; rank < ranks; ++rank) {
    const int parent = parents[static_cast<std::size_t>(rank)], depth = depth_of(parents, rank);
    if (parent < 0) continue;
    schedule.combine(deepest - depth, rank, parent, chunk);
    schedule.copy(deepest + depth - 1, parent, rank, chunk);
  }
}

}  // namespace

Schedule double_binary_tree(int ranks) {
  ScheduleBuilder schedule("double-tree", ranks, 2);
  for (const bool second : {false, true}) add_tree(schedule, parents_of(ranks, second), second ? 1 : 0);
  return schedule.take();
}

}  // namespace tandem::comm
