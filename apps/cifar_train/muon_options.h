// Options of Muon that are several numbers.
#pragma once

#include "settings.h"

#include <string>

namespace tandem::apps {

/// The text of --normalize-every, "N" or "N,M" of whole numbers, N from 1 and M from 0 on. Throws Error for another.
std::string read_normalize_every(const std::string& text);

/// The text of --newton-schulz, three finite numbers "A,B,C". Throws Error for another.
std::string read_newton_schulz(const std::string& text);

/// The optimizer's options with these two, of a run of so many steps.
optim::OptimizerOptions optimizer_options(const Settings& settings, std::int64_t steps);

}  // namespace tandem::apps
