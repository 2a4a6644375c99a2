// Where the time of an epoch goes.
#pragma once

#include "tandem/core/timeline.h"

#include <chrono>
#include <utility>

namespace tandem::train {

/// Seconds of an epoch on one rank. On a GPU they are the host's, which runs ahead of the device and is never made to
/// wait for the sake of a clock: a phase is what enqueueing takes there, and what the host waits for in it, whatever
/// work that is. Backward waits for the loss, which is there before the gradients are; so that the time of these shows
/// where the host waits next: in communication, in optimizer where a loss scale looks at the gradients, or in the next
/// step's backward.
struct PhaseTimes {
  double data = 0.0;           ///< waiting for batches
  double forward = 0.0;        ///< model and loss
  double backward = 0.0;       ///< gradients, with the exchange that runs beside them, and counting loss and accuracy
  double communication = 0.0;  ///< waiting for other ranks: for gradients that backward did not hide, sums, stopping
  double optimizer = 0.0;      ///< clearing, unscaling, clipping and applying gradients; averages of weights
  double evaluation = 0.0;     ///< of test and validation images
  double writing = 0.0;        ///< in the observer: log, progress line, copies for checkpoints

  /// All of these.
  double total() const { return data + forward + backward + communication + optimizer + evaluation + writing; }
};

/// All of them by name, in the order of a step.
inline constexpr std::pair<const char*, double PhaseTimes::*> kPhases[] = {
    {"data", &PhaseTimes::data},           {"forward", &PhaseTimes::forward},
    {"backward", &PhaseTimes::backward},   {"communication", &PhaseTimes::communication},
    {"optimizer", &PhaseTimes::optimizer}, {"evaluation", &PhaseTimes::evaluation},
    {"writing", &PhaseTimes::writing}};

/// Cuts time into phases: each end() gives what has passed since the one before to a phase, which is a range of a
/// timeline, too.
/// Example:
///     PhaseTimer timer;
///     timer.start();
///     // ... read
///     timer.end(&PhaseTimes::data);
///     // ... compute
///     timer.end(&PhaseTimes::forward);
///     const double seconds = timer.times().total();
class PhaseTimer {
 public:
  /// Steady: nobody sets it back.
  using Clock = std::chrono::steady_clock;

  /// From zero, and now.
  void start() {
    times_ = {};
    last_ = Clock::now();
  }

  /// Adds the time since start(), or since the last end(), to this phase.
  void end(double PhaseTimes::* phase) {
    const Clock::time_point now = Clock::now();
    times_.*phase += std::chrono::duration<double>(now - last_).count();
    if (timeline_is_recorded()) [[unlikely]]
      note_phase(phase, now);
    last_ = now;
  }

  /// When the last phase ended.
  Clock::time_point last() const { return last_; }

  /// So far.
  const PhaseTimes& times() const { return times_; }

 private:
  /// For a timeline, where one is recorded.
  void note_phase(double PhaseTimes::* phase, Clock::time_point now) const;

  PhaseTimes times_;
  Clock::time_point last_ = Clock::now();
};

}  // namespace tandem::train
