// Schedule and loss scale as the settings ask for them.
#pragma once

#include "settings.h"

#include "tandem/optim/grad_scaler.h"
#include "tandem/optim/schedule.h"

#include <memory>

namespace tandem::apps {

/// Settings must be resolved, here and below.
optim::GradScaler make_scaler(const Settings& settings);

/// Its time is counted in steps.
std::unique_ptr<optim::Schedule> make_schedule(const Settings& settings, std::int64_t steps_per_epoch);

}  // namespace tandem::apps
