// From a root to all, and from all to a root.
#include "tandem/comm/schedules/algorithms.h"
#include "tandem/comm/schedules/schedule_builder.h"

namespace tandem::comm {

Schedule binomial_broadcast(int ranks, int root) {
  ScheduleBuilder schedule("binomial-tree", ranks, 1);
  const auto rank_of = [=](int place) { return (place + root) % ranks; };  // the root has place 0
  int round = 0;
  for (int distance = 1; distance < ranks; distance *= 2, ++round) {
    for (int place = 0; place < distance && place + distance < ranks; ++place)
      schedule.copy(round, rank_of(place), rank_of(place + distance), 0);
  }
  return schedule.take();
}

Schedule chain_broadcast(int ranks, int root) {
  ScheduleBuilder schedule("chain", ranks, 1);
  for (int place = 0; place + 1 < ranks; ++place)
    schedule.copy(place, (place + root) % ranks, (place + 1 + root) % ranks, 0);
  return schedule.take();
}

Schedule binomial_reduce(int ranks, int root) {
  ScheduleBuilder schedule("binomial-tree", ranks, 1);
  int round = 0;
  for (int distance = 1; distance < ranks; distance *= 2, ++round) {
    for (int place = 0; place + distance < ranks; place += 2 * distance)
      schedule.combine(round, (place + distance + root) % ranks, (place + root) % ranks, 0);
  }
  return schedule.take();
}

}  // namespace tandem::comm
