// Reduce-scatter by halves, then all-gather by doubles.
#include "tandem/comm/schedules/algorithms.h"
#include "tandem/comm/schedules/powers_of_two.h"

namespace tandem::comm {

Schedule halving_doubling(int ranks) {
  const int inner = power_of_two_in(ranks);
  ScheduleBuilder schedule("halving-doubling", ranks, inner);
  fold_in(schedule, 0, ranks, inner);
  int round = 1;
  // A rank is left with the chunks whose numbers have its own upper bits: at the end, with that of its own number.
  for (int distance = inner / 2; distance >= 1; distance /= 2, ++round) {
    for (int rank = 0; rank < inner; ++rank) {
      const int to = rank ^ distance, first = to / distance * distance;
      for (int chunk = first; chunk < first + distance; ++chunk) schedule.combine(round, rank, to, chunk);
    }
  }
  for (int distance = 1; distance < inner; distance *= 2, ++round) {
    for (int rank = 0; rank < inner; ++rank) {
      const int first = rank / distance * distance;
      for (int chunk = first; chunk < first + distance; ++chunk) schedule.copy(round, rank, rank ^ distance, chunk);
    }
  }
  fold_out(schedule, round, ranks, inner);
  return schedule.take();
}

}  // namespace tandem::comm
