// Writing schedules message by message. Internal to comm/schedules.
#pragma once

#include "tandem/comm/schedules/schedule.h"

#include <string>

namespace tandem::comm {

/// Collects messages and makes both ends' steps of them. In each round a rank's sends come before what it receives, so
/// that two ranks can exchange a chunk in one round.
class ScheduleBuilder {
 public:
  ScheduleBuilder(std::string name, int ranks, int chunks);

  /// In `round`, `to` gets the chunk of `from` and puts it in the place of its own.
  void copy(int round, int from, int to, int chunk);
  /// The same, combined with its own: as the left operand with `sender_is_left`.
  void combine(int round, int from, int to, int chunk, bool sender_is_left = false);

  /// Once.
  Schedule take();

 private:
  void add(int round, int from, int to, const Step& received);
  void sort_steps();
  void mark_complete();

  Schedule schedule_;
};

}  // namespace tandem::comm
