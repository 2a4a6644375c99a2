// --profile: the timeline of some steps, of all ranks.
#pragma once

#include "settings.h"

#include "tandem/comm/process_group.h"
#include "tandem/core/timeline.h"
#include "tandem/layers/module.h"
#include "tandem/optim/optimizer.h"
#include "tandem/train/trainer.h"

#include <optional>
#include <string>
#include <vector>

namespace tandem::apps {

/// Records the steps that --profile names; nothing without it.
class ProfiledSteps {
 public:
  /// All that is given must outlive this object. `device`: whose memory, and on a GPU whose work, is watched.
  ProfiledSteps(const Settings& settings, const train::Trainer& trainer, const layers::Module& model,
                const optim::Optimizer& optimizer, Device device);

  /// `observer`, and what begins and ends recording. Must not outlive this object.
  train::TrainObserver with(const train::TrainObserver& observer);

  /// Behind the training: rank 0 writes trace.json and profile.txt into the run directory, prints the latter, and adds
  /// to `problems` what could not be written. Where none of the steps was taken, a note says so. `measures_machine`:
  /// the table tells shares of what the CPU can do, which takes a second to measure. Collective.
  void finish(comm::ProcessGroup& group, bool measures_machine, std::vector<std::string>& problems);

 private:
  /// Begins or ends recording before the trainer's next step.
  void look();
  NamedTensors named_tensors() const;

  const Settings& settings_;
  const train::Trainer& trainer_;
  const layers::Module& model_;
  const optim::Optimizer& optimizer_;
  Device device_;
  std::optional<std::int64_t> begun_at_;  // steps that were done then
  std::int64_t steps_ = 0;                // recorded
  std::optional<Timeline> timeline_;      // once it is complete
};

}  // namespace tandem::apps
