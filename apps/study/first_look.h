// Whether runs can be made at all, before any is begun.
#pragma once

#include "apps/study/plan.h"

#include <string>
#include <vector>

namespace tandem::study {

/// Trains one step on what the plans say of data, device and threads, and on the network that `asked` names, if any:
/// what the command line got wrong, or data that are not there, would fail all runs. Then has the program read the
/// options of each point but optional ones, so that a value that it refuses ends a study before its first run, not
/// behind some hours. `folder` is for what it prints. Throws Error with the program's reason, and the point's label.
void look_first(const std::vector<Plan>& plans, const Settings& asked, const std::string& folder);

}  // namespace tandem::study
