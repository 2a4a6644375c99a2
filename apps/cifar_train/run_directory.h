// The folder that keeps a run: --run-dir.
#pragma once

#include "settings.h"

#include "tandem/comm/process_group.h"
#include "tandem/train/checkpoint/checkpointing.h"
#include "tandem/train/records.h"
#include "tandem/train/stop_signals.h"

#include <string>

namespace tandem::apps {

/// Where the run's checkpoints are, below --run-dir; a folder without a path where that was not given.
train::CheckpointFolder checkpoint_folder(const Settings& settings);

/// When they are written, which are kept, and what they say of themselves.
train::CheckpointingOptions checkpointing_options(const Settings& settings);

/// Makes the folder, and writes `config` there as config.toml. Refuses a folder that holds the checkpoints of another
/// run, unless this one goes on from it. For rank 0. Throws Error.
void prepare_run_directory(const Settings& settings, const std::string& config);

/// Goes on from what --resume names, if it was given; tells, on rank 0, from where. Collective. Throws AgreedError.
void resume(const Settings& settings, train::Checkpointing& checkpoints, const comm::ProcessGroup& group);

/// Ends a run that a signal stopped: writes a checkpoint, and tells how to go on. Returns the exit code, that of a
/// process which the signal ended. Collective.
int end_stopped_run(const Settings& settings, const train::EpochRecord& last, const train::StopSignals& signals,
                    train::Checkpointing& checkpoints, comm::ProcessGroup& group);

/// Makes the report of the run directory, if there is one, and tells where it is. Where that fails, a warning is all:
/// no training is lost by it. For rank 0.
void report_run(const Settings& settings);

}  // namespace tandem::apps
