// Epochs and steps of one run, each said of what it counts.
#include "resume_text.h"

#include "run_directory.h"

#include <fmt/core.h>

namespace tandem::apps {
namespace {

std::string nothing_found_text(const Settings& s, bool is_new) {
  if (s.run_dir_choice.empty())
    return fmt::format("no unfinished run of {} on {} is below runs: a new one begins, in {}", s.model.name,
                       s.data.name, s.run_dir);
  if (is_new) return fmt::format("there was no folder {} to go on from: the run begins at its first step", s.run_dir);
  return fmt::format("no checkpoint is in {}: the run begins at its first step", checkpoint_folder(s).path());
}

}  // namespace

std::string resume_point_text(const ResumePoint& p) {
  const std::int64_t steps = p.steps > 0 ? p.steps : p.epochs * p.steps_per_epoch;
  const std::int64_t in_epoch = p.steps_done - p.epochs_done * p.steps_per_epoch;
  const std::string done = fmt::format("({} of {} steps are done)", p.steps_done, steps);
  const std::string epoch = fmt::format("epoch {} of {}", p.epochs_done + 1, p.epochs);
  if (p.stopped_early)
    return fmt::format("no step is left: early stopping ended the run behind epoch {} {}; it is evaluated again",
                       p.epochs_done, done);
  if (p.steps_done > steps)
    return fmt::format("no step is left: {} are done, and the run is to have {}; it is evaluated again", p.steps_done,
                       steps);
  if (p.epochs_done < p.epochs && in_epoch == p.steps_per_epoch)
    return fmt::format("goes on with the evaluation of {} {}", epoch, done);
  if (p.steps_done == steps) return fmt::format("no step is left: all {} are done; the run is evaluated again", steps);
  if (in_epoch == 0) return fmt::format("goes on with {} {}", epoch, done);
  return fmt::format("goes on in {}, behind {} of its {} steps {}", epoch, in_epoch, p.steps_per_epoch, done);
}

std::string resume_text(const Settings& s, const train::Resumed& resumed, const train::Trainer& trainer, bool is_new) {
  if (resumed.path.empty()) return fmt::format("  resume   {}\n", nothing_found_text(s, is_new));
  return fmt::format("  resume   {}: {}\n", resumed.path,
                     resume_point_text({.epochs_done = resumed.epochs,
                                        .steps_done = resumed.steps,
                                        .steps_per_epoch = trainer.steps_per_epoch(),
                                        .epochs = trainer.options().epochs,
                                        .steps = trainer.options().steps,
                                        .stopped_early = trainer.stopped_early()}));
}

}  // namespace tandem::apps
