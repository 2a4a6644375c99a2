// --profile and --trace: the timeline of some steps, of all ranks.
#pragma once

#include "settings.h"

#include "tandem/comm/clock_offsets.h"
#include "tandem/comm/process_group.h"
#include "tandem/core/timeline.h"
#include "tandem/layers/module.h"
#include "tandem/optim/optimizer.h"
#include "tandem/train/trainer.h"

#include <optional>
#include <string>
#include <vector>

namespace tandem::apps {

/// Beside a trace: where the picture of one of its steps is written.
std::string step_picture_file(const std::string& trace_file);

/// Records the steps that --profile names; with --trace alone five, from the run's third on; nothing without both.
class ProfiledSteps {
 public:
  /// All that is given must outlive this object. `device`: whose memory, and on a GPU whose work, is watched.
  ProfiledSteps(const Settings& settings, const train::Trainer& trainer, const layers::Module& model,
                const optim::Optimizer& optimizer, comm::ProcessGroup& group, Device device);

  /// `observer`, and what begins and ends recording. Must not outlive this object. Collective.
  train::TrainObserver with(const train::TrainObserver& observer);

  /// Behind the training: rank 0 writes the file of --trace, and of --profile trace.json, profile.txt and profile.json
  /// into the run directory, beside each trace a picture of a step, prints the table, and adds to `problems` what could
  /// not be written. Where none of the steps was taken, a note says so. `measures_machine`: the table tells shares of
  /// what the CPU can do, which takes a second to measure. Collective.
  void finish(bool measures_machine, std::vector<std::string>& problems);

 private:
  /// Begins or ends recording before the trainer's next step.
  void look();
  void begin();
  void end();
  void note_none() const;
  void write_profile(const std::string& trace, const std::string& ranks, bool measures_machine,
                     std::vector<std::string>& problems) const;
  NamedTensors named_tensors() const;

  const Settings& settings_;
  const train::Trainer& trainer_;
  const layers::Module& model_;
  const optim::Optimizer& optimizer_;
  comm::ProcessGroup& group_;
  Device device_;
  std::optional<train::StepWindow> window_;
  std::vector<comm::ClockOffset> clocks_;  // at the beginning and the end
  std::optional<std::int64_t> begun_at_;   // steps that were done then
  std::int64_t steps_ = 0;                 // recorded
  std::optional<Timeline> timeline_;       // once it is complete
};

}  // namespace tandem::apps
