// What a run writes into its directory beside settings, log, checkpoints and weights: environment, events, curves.
#pragma once

#include "settings.h"

#include "tandem/comm/process_group.h"
#include "tandem/train/console.h"
#include "tandem/train/environment_file.h"
#include "tandem/train/report/report.h"
#include "tandem/train/trainer.h"
#include "tandem/train/writers/tensorboard/run_events.h"

#include <memory>
#include <string>
#include <vector>

namespace tandem::apps {

/// Rank 0 writes; nothing is written of a run that has no directory. What cannot be written once training has begun, as
/// on a full disk, is told, and ends nothing.
class RunFiles {
 public:
  /// The beginning: environment.json and a new event file, in which the trainer's next step will be the first. All that
  /// is given must outlive this object. Collective. Throws AgreedError where they cannot be written.
  RunFiles(const Settings& settings, const train::RunRecord& run, const std::vector<std::string>& command,
           comm::ProcessGroup& group, const train::Trainer& trainer, const layers::Module& model);

  /// `observer`, and what writes events. Must not outlive this object.
  train::TrainObserver with(const train::TrainObserver& observer);

  /// Writes environment.json, and what is waiting for the event file, into a directory that was made again. Throws
  /// Error.
  void write_again();

  /// The end of training, on rank 0: writes what is left, and adds to `problems` what is missing. `last`: what training
  /// returned; null where it threw. A run that will go on later is not ended for TensorBoard.
  void finish(train::RunState state, const train::EpochRecord* last, std::vector<std::string>& problems);

  /// What could not be written so far, "" if nothing.
  std::string problem() const { return writes() ? events_->writer().problem() : ""; }

  /// Where the run's files are, as far as they are there; `weights`: of the end. `logs`: of the reporter.
  /// `report`: null without one.
  train::ResultFiles places(const std::vector<std::string>& weights, const std::vector<std::string>& logs,
                            const train::ReportFiles* report) const;

  /// The end of the run with this exit code, which is returned: environment.json tells it.
  int end(train::RunState state, int exit_code);

 private:
  bool writes() const { return environment_ != nullptr; }
  std::string path_of(const char* name) const;
  void write_curves(std::vector<std::string>& problems) const;

  const Settings& settings_;
  const train::Trainer& trainer_;
  const layers::Module& model_;
  bool is_resumed_ = false;
  std::unique_ptr<train::EnvironmentFile> environment_;
  std::unique_ptr<train::RunEvents> events_;
};

}  // namespace tandem::apps
