// One run of cifar_train, from the command line to the exit code.
#pragma once

#include "tandem/comm/launch/mpi_environment.h"

#include <chrono>

namespace tandem::apps {

using Clock = std::chrono::steady_clock;

/// Returns 0, or 1 where training went astray. What the user got wrong is thrown on all ranks alike, before training
/// begins. `start` is when the program began.
int run(int argc, const char* const* argv, comm::MpiEnvironment& environment, Clock::time_point start);

}  // namespace tandem::apps
