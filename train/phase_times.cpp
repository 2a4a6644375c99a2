// Phases on a timeline.
#include "tandem/train/phase_times.h"

#include <string_view>
#include <utility>

namespace tandem::train {

void PhaseTimer::note_phase(double PhaseTimes::* phase, Clock::time_point now) const {
  constexpr std::pair<double PhaseTimes::*, std::string_view> kNames[] = {
      {&PhaseTimes::data, "data"},           {&PhaseTimes::forward, "forward"},
      {&PhaseTimes::backward, "backward"},   {&PhaseTimes::communication, "communication"},
      {&PhaseTimes::optimizer, "optimizer"}, {&PhaseTimes::evaluation, "evaluation"},
      {&PhaseTimes::writing, "writing"}};
  for (const auto& [known, name] : kNames)
    if (known == phase) detail::add_to_timeline(name, last_, now - last_, 0.0, 0.0);
}

}  // namespace tandem::train
