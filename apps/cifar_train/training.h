// From settings to a trained network, with reports on the way.
#pragma once

#include "claimed_directory.h"
#include "option_table.h"
#include "run.h"
#include "run_parts.h"
#include "settings.h"

#include "tandem/comm/process_group.h"

namespace tandem::apps {

/// Loads, trains, logs and saves. Returns the program's exit code. Collective; what cannot be set up is thrown on all
/// ranks alike, before training begins. `device`: where this rank computes; `config_text`: a config file that gives the
/// same run; `data`: of all ranks in this process; `command`: what main() was given; `claimed`: the run directory.
int train_and_report(const Settings& settings, const OptionTable& table, const std::string& config_text, Device device,
                     const comm::MpiEnvironment& environment, comm::ProcessGroup& group, SharedData& data,
                     Clock::time_point start, const std::vector<std::string>& command, ClaimedDirectory& claimed);

}  // namespace tandem::apps
