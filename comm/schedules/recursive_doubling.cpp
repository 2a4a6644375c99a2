// Exchanges between ranks whose numbers differ in one bit.
#include "tandem/comm/schedules/algorithms.h"
#include "tandem/comm/schedules/powers_of_two.h"

namespace tandem::comm {

Schedule recursive_doubling(int ranks) {
  ScheduleBuilder schedule("recursive-doubling", ranks, 1);
  const int inner = power_of_two_in(ranks);
  fold_in(schedule, 0, ranks, 1);
  int round = 1;
  for (int distance = 1; distance < inner; distance *= 2, ++round) {
    for (int rank = 0; rank < inner; ++rank) {
      const int to = rank ^ distance;
      schedule.combine(round, rank, to, 0, /*sender_is_left=*/rank < to);
    }
  }
  fold_out(schedule, round, ranks, 1);
  return schedule.take();
}

}  // namespace tandem::comm
