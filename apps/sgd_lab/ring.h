// A schedule followed on numbers, round by round.
#pragma once

#include "tandem/comm/schedules/schedule.h"

#include <cstdint>
#include <vector>

namespace tandem::sgd_lab {

/// What ranks hold: by rank and chunk, one number each.
using Values = std::vector<std::vector<std::int64_t>>;

struct Message {
  int from = 0, to = 0, chunk = 0;
  std::int64_t value = 0;  ///< on its way
  bool is_added = false;   ///< to what `to` holds, else in its place
};

struct Round {
  std::vector<Message> messages;
  Values after;
};

struct RingLesson {
  comm::Schedule schedule;
  Values before;
  std::vector<Round> rounds;
  /// How many ranks' numbers are in what each rank holds: before, and after each round.
  std::vector<Values> parts;
};

/// What each round of the schedule sends, and leaves.
std::vector<Round> follow(const comm::Schedule& schedule, Values values);

/// All-reduce by a ring of so many ranks, on numbers from 1 to 9.
RingLesson make_ring_lesson(int ranks, std::uint64_t seed);

}  // namespace tandem::sgd_lab
