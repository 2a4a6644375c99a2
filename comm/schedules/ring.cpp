// Round the ring: rank r sends to r + 1.
#include "tandem/comm/schedules/algorithms.h"
#include "tandem/comm/schedules/schedule_builder.h"

namespace tandem::comm {

Schedule ring_all_reduce(int ranks) {
  ScheduleBuilder schedule("ring", ranks, ranks);
  const auto wrap = [ranks](int value) { return ((value % ranks) + ranks) % ranks; };
  for (int round = 0; round < ranks - 1; ++round) {
    for (int rank = 0; rank < ranks; ++rank) schedule.combine(round, rank, wrap(rank + 1), wrap(rank - round));
  }
  // Now rank r holds the finished chunk r + 1.
  for (int round = 0; round < ranks - 1; ++round) {
    for (int rank = 0; rank < ranks; ++rank)
      schedule.copy(ranks - 1 + round, rank, wrap(rank + 1), wrap(rank + 1 - round));
  }
  return schedule.take();
}

Schedule ring_all_gather(int ranks) {
  ScheduleBuilder schedule("ring", ranks, ranks);
  for (int round = 0; round < ranks - 1; ++round) {
    for (int rank = 0; rank < ranks; ++rank)
      schedule.copy(round, rank, (rank + 1) % ranks, (rank - round + ranks) % ranks);
  }
  return schedule.take();
}

}  // namespace tandem::comm
