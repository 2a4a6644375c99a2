// Everybody with everybody, or with the root. In round k a rank sends to the one that is k + 1 further on, so that no
// rank is sent to by all others at once.
#include "tandem/comm/schedules/algorithms.h"
#include "tandem/comm/schedules/schedule_builder.h"

namespace tandem::comm {

namespace {

/// Calls visit(round, from, to) for all pairs of ranks.
template <typename Visit>
void for_each_pair(int ranks, Visit&& visit) {
  for (int round = 0; round < ranks - 1; ++round) {
    for (int rank = 0; rank < ranks; ++rank) visit(round, rank, (rank + round + 1) % ranks);
  }
}

}  // namespace

Schedule direct_all_reduce(int ranks) {
  ScheduleBuilder schedule("direct", ranks, ranks);
  for_each_pair(ranks, [&](int round, int from, int to) { schedule.combine(round, from, to, to); });
  for_each_pair(ranks, [&](int round, int from, int to) { schedule.copy(ranks - 1 + round, from, to, from); });
  return schedule.take();
}

Schedule direct_reduce_scatter(int ranks) {
  ScheduleBuilder schedule("direct", ranks, ranks);
  for_each_pair(ranks, [&](int round, int from, int to) { schedule.combine(round, from, to, to); });
  return schedule.take();
}

Schedule direct_gather(int ranks, int root) {
  ScheduleBuilder schedule("direct", ranks, ranks);
  for_each_pair(ranks, [&](int round, int from, int to) {
    if (to == root) schedule.copy(round, from, to, from);
  });
  return schedule.take();
}

Schedule direct_scatter(int ranks, int root) {
  ScheduleBuilder schedule("direct", ranks, ranks);
  for_each_pair(ranks, [&](int round, int from, int to) {
    if (from == root) schedule.copy(round, from, to, to);
  });
  return schedule.take();
}

Schedule direct_all_to_all(int ranks) {
  ScheduleBuilder schedule("direct", ranks, ranks * ranks);
  for_each_pair(ranks, [&](int round, int from, int to) { schedule.copy(round, from, to, from * ranks + to); });
  return schedule.take();
}

}  // namespace tandem::comm
