// Everybody with everybody, or with the root, in one round. A rank sends to the next rank first, then to the one behind
// that, so that no rank is sent to by all others at once.
#include "tandem/comm/schedules/algorithms.h"
#include "tandem/comm/schedules/schedule_builder.h"

namespace tandem::comm {

namespace {

/// Calls visit(from, to) for all pairs of ranks.
template <typename Visit>
void for_each_pair(int ranks, Visit&& visit) {
  for (int distance = 1; distance < ranks; ++distance) {
    for (int rank = 0; rank < ranks; ++rank) visit(rank, (rank + distance) % ranks);
  }
}

}  // namespace

Schedule direct_all_reduce(int ranks) {
  ScheduleBuilder schedule("direct", ranks, ranks);
  for_each_pair(ranks, [&](int from, int to) { schedule.combine(0, from, to, to); });
  for_each_pair(ranks, [&](int from, int to) { schedule.copy(1, from, to, from); });
  return schedule.take();
}

Schedule direct_reduce_scatter(int ranks) {
  ScheduleBuilder schedule("direct", ranks, ranks);
  for_each_pair(ranks, [&](int from, int to) { schedule.combine(0, from, to, to); });
  return schedule.take();
}

Schedule direct_gather(int ranks, int root) {
  ScheduleBuilder schedule("direct", ranks, ranks);
  for_each_pair(ranks, [&](int from, int to) {
    if (to == root) schedule.copy(0, from, to, from);
  });
  return schedule.take();
}

Schedule direct_scatter(int ranks, int root) {
  ScheduleBuilder schedule("direct", ranks, ranks);
  for_each_pair(ranks, [&](int from, int to) {
    if (from == root) schedule.copy(0, from, to, to);
  });
  return schedule.take();
}

Schedule direct_all_to_all(int ranks) {
  ScheduleBuilder schedule("direct", ranks, ranks * ranks);
  for_each_pair(ranks, [&](int from, int to) { schedule.copy(0, from, to, from * ranks + to); });
  return schedule.take();
}

}  // namespace tandem::comm
