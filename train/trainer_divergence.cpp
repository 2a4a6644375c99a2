// Where a Trainer's run ends because its numbers are none any more, and how ranks agree on that.
#include "tandem/train/metrics.h"
#include "tandem/train/trainer.h"

#include <algorithm>
#include <limits>

namespace tandem::train {

/// Asks the observers of all ranks.
bool Trainer::must_stop(const TrainObserver& observer) {
  return max_over_ranks(observer.stop && observer.stop() ? 1.0 : 0.0, parts_.group) > 0.0;
}

/// What all ranks do behind a step. A loss that is not finite goes with the question whether to stop, which is asked
/// anyway; where it is not, no message is sent for it.
Trainer::StepsEnd Trainer::end_of_step(const TrainObserver& observer) {
  if (options_.max_skipped_steps > 0 && skipped_in_a_row_.reaches(options_.max_skipped_steps))
    return StepsEnd::diverged;
  const StepsEnd mine = epoch_scores_.bad_step() > 0       ? StepsEnd::diverged
                        : observer.stop && observer.stop() ? StepsEnd::stopped
                                                           : StepsEnd::complete;
  if (may_stop_ || parts_.group.size() == 1)
    return static_cast<StepsEnd>(max_over_ranks(static_cast<double>(mine), parts_.group));
  return all_know_ ? StepsEnd::diverged : StepsEnd::complete;
}

/// The same on all ranks. Collective.
Divergence Trainer::divergence() {
  constexpr double kNone = -std::numeric_limits<double>::infinity();
  const std::int64_t bad_step = epoch_scores_.bad_step();
  const double first = -max_over_ranks(bad_step > 0 ? -static_cast<double>(bad_step) : kNone, parts_.group);
  if (first != -kNone) return {.step = static_cast<std::int64_t>(first)};
  // Without a bad step here, the sums that were gone on from hold one.
  const std::int64_t skipped = skipped_in_a_row_.count();
  skipped_in_a_row_.reset();
  return {.step = step_, .skipped_steps = skipped};
}

}  // namespace tandem::train
