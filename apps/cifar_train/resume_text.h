// What a run with --resume says of where it begins.
#pragma once

#include "settings.h"

#include "tandem/train/checkpoint/checkpointing.h"
#include "tandem/train/trainer.h"

#include <cstdint>
#include <string>

namespace tandem::apps {

/// Where a run goes on, and how long it is to be.
struct ResumePoint {
  std::int64_t epochs_done = 0, steps_done = 0;
  std::int64_t steps_per_epoch = 0, epochs = 0;
  std::int64_t steps = 0;      ///< of --steps; 0: those of its epochs
  bool stopped_early = false;  ///< by early stopping
};

/// "goes on in epoch 3 of 4, behind 15 of its 30 steps (75 of 120 steps are done)": in an epoch, with the next one,
/// with an evaluation that was left, or not at all, where no step is left.
std::string resume_point_text(const ResumePoint& point);

/// The line of the header about --resume: from where the run goes on or, where --resume auto found nothing, what it
/// looked for and where. `is_new`: the run directory was made just now.
std::string resume_text(const Settings& settings, const train::Resumed& resumed, const train::Trainer& trainer,
                        bool is_new);

}  // namespace tandem::apps
