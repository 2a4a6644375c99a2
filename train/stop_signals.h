// Ending a run in order when the system asks for it.
#pragma once

namespace tandem::train {

/// While it is there, the first SIGINT (Ctrl-C), SIGTERM (what Slurm sends before a job's time is over) or SIGHUP (the
/// terminal is closed) is only noted, unless it was ignored before (as nohup does with SIGHUP), and one that comes half
/// a second later or more ends the process at once, as it would without. What comes sooner is the same request:
/// launchers send a SIGTERM behind the terminal's SIGINT. One at a time in a process. Example:
///     #include "tandem/train/trainer.h"
///     TrainObserver stopping(const StopSignals& signals) {
///       return {.stop = [&signals] { return signals.requested() != 0; }};
///     }
class StopSignals {
 public:
  /// Throws Error if there is one already.
  StopSignals();
  /// What a signal did before, it does again.
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  /// The signal that came, 0 if none did.
  int requested() const;
};

}  // namespace tandem::train
