// What algorithms for powers of two do with the other ranks. Internal to comm/schedules.
#pragma once

#include "tandem/comm/schedules/schedule_builder.h"

#include <bit>

namespace tandem::comm {

/// The largest power of two that is not above `ranks`.
inline int power_of_two_in(int ranks) { return static_cast<int>(std::bit_floor(static_cast<unsigned>(ranks))); }

/// In `round`, the ranks from the power of two on give all chunks to the partners that they have below.
inline void fold_in(ScheduleBuilder& schedule, int round, int ranks, int chunks) {
  const int inner = power_of_two_in(ranks);
  for (int rank = inner; rank < ranks; ++rank) {
    for (int chunk = 0; chunk < chunks; ++chunk) schedule.combine(round, rank, rank - inner, chunk);
  }
}

/// In `round`, they get all chunks from these.
inline void fold_out(ScheduleBuilder& schedule, int round, int ranks, int chunks) {
  const int inner = power_of_two_in(ranks);
  for (int rank = inner; rank < ranks; ++rank) {
    for (int chunk = 0; chunk < chunks; ++chunk) schedule.copy(round, rank - inner, rank, chunk);
  }
}

}  // namespace tandem::comm
