// How a run ends: at its end, by a signal, because something cannot be written, or by an error.
#pragma once

#include "profiled_steps.h"
#include "run_directory_watch.h"
#include "run_files.h"
#include "run_parts.h"
#include "settings.h"

#include "tandem/comm/process_group.h"
#include "tandem/train/checkpoint/checkpointing.h"
#include "tandem/train/reporter.h"
#include "tandem/train/stop_signals.h"

namespace tandem::apps {

/// A run that is ready to begin; all outlives it.
struct ReadyRun {
  const Settings& settings;
  const Data& images;
  RunParts& parts;
  comm::ProcessGroup& group;
  Device device;
  train::Checkpointing& checkpoints;
  RunFiles& files;
  ProfiledSteps& profiled;
  RunDirectoryWatch& watch;
  train::Reporter& reporter;
  const train::StopSignals* signals;  ///< null: these end the process
};

/// Trains, and writes and tells what there is to be kept, whichever way training ends: profile, evaluation, weights,
/// tuning, curves, events, how it ended (environment.json), report. Returns the exit code: 0, 1 where something could
/// not be written or the loss is not finite, or that of a process which a signal ended. What training throws is thrown
/// on behind that. Collective.
int train_to_the_end(const ReadyRun& run, const train::TrainObserver& observer);

}  // namespace tandem::apps
