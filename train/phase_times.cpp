// Phases on a timeline.
#include "tandem/train/phase_times.h"

namespace tandem::train {

void PhaseTimer::note_phase(double PhaseTimes::* phase, Clock::time_point now) const {
  for (const auto& [name, known] : kPhases)
    if (known == phase) detail::add_to_timeline(detail::timeline_event(name, last_, now - last_));
}

}  // namespace tandem::train
