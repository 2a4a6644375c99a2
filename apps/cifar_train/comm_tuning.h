// --tune-comm and --comm-costs: algorithms of all-reduces that are chosen by what messages cost.
#pragma once

#include "settings.h"

#include "tandem/comm/process_group.h"

#include <functional>
#include <string>

namespace tandem::apps {

/// Prints lines of the run's header.
using TellLines = std::function<void(const std::string&)>;

/// Has the group choose by what --comm-costs holds for it or, where it holds nothing and --tune-comm is given, by what
/// is measured now, and keeps that. Rank 0 tells it, or why there is nothing to choose; without these options, what is
/// chosen by usual costs, if anything is. Collective; throws AgreedError where it cannot be kept, and, without
/// --tune-comm, for a file that is damaged or another one.
void tune_comm(const Settings& settings, comm::ProcessGroup& group, const TellLines& tell);

/// The same by what --comm-costs holds alone: nothing is measured, kept or told.
void use_kept_costs(const Settings& settings, comm::ProcessGroup& group);

}  // namespace tandem::apps
