// The folder that keeps a run: --run-dir.
#pragma once

#include "option_table.h"
#include "settings.h"

#include "tandem/comm/process_group.h"
#include "tandem/data/image_dataset.h"
#include "tandem/train/checkpoint/checkpointing.h"
#include "tandem/train/evaluation_report.h"
#include "tandem/train/report/report.h"

#include <optional>
#include <string>

namespace tandem::apps {

/// Where the run's checkpoints are, below --run-dir; a folder without a path where that was not given.
train::CheckpointFolder checkpoint_folder(const Settings& settings);

/// What becomes of a run where something cannot be written, by --on-save-error: the end of a warning.
std::string after_problem(const Settings& settings);

/// When they are written, which are kept, and what they say of themselves: the options of `table`, which must outlive
/// them, and, for tandem_predict, the network and what it was trained with, `images`. Those of another run are refused,
/// or named in `differences`, where there is something to tell.
train::CheckpointingOptions checkpointing_options(const Settings& settings, const OptionTable& table,
                                                  const data::ImageDataset& images, std::string& differences);

/// Refuses a folder that cannot be written to, or that holds the checkpoints of another run, unless this one goes on
/// from it. For rank 0. Throws Error.
void prepare_run_directory(const Settings& settings);

/// What to do where the last checkpoint could not be written for the reason `problem`: which one there is, and how to
/// go on from it.
std::string checkpoint_problem(const Settings& settings, const std::string& problem);

/// Writes `config` to the folder as config.toml; one that is there and says something else becomes config-1.toml, or
/// whichever number is free. For rank 0, when nothing can be refused any more. Throws Error.
void keep_config(const Settings& settings, const std::string& config);

/// Writes evaluation.json there: what became of the images of `tested`. Returns what went wrong, "" if nothing.
std::string write_evaluation(const Settings& settings, const train::EvaluationReport& report,
                             const data::ImageDataset& tested);

/// Goes on from what --resume names, if it was given. Collective. Throws AgreedError, which tells the `differences`
/// that checkpointing_options() has found, as these may be why a state does not fit.
train::Resumed resume(const Settings& settings, train::Checkpointing& checkpoints, const std::string& differences);

/// Tells on stderr, if --resume was given, what was passed over, and which settings are others from there. For rank 0.
void note_resumed(const Settings& settings, const train::Resumed& resumed, const std::string& differences);

/// Makes the report of the run directory, if there is one. Where that fails, a warning is all: no training is lost by
/// it. For rank 0.
std::optional<train::ReportFiles> make_report(const Settings& settings);

}  // namespace tandem::apps
