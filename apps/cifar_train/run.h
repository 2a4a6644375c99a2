// One run of cifar_train, from the command line to the exit code.
#pragma once

#include "config_file.h"

#include "tandem/comm/launch/mpi_environment.h"

#include <chrono>
#include <string>

namespace tandem::apps {

using Clock = std::chrono::steady_clock;

/// The value of --iface, which MPI must know when it starts; "" for none, and for a command line that is wrong, of
/// which run() tells.
std::string interface_asked_for(int argc, const char* const* argv, ConfigReader& configs);

/// Returns 0, or 1 where training went astray. What the user got wrong is thrown on all ranks alike, before training
/// begins. `start` is when the program began.
int run(int argc, const char* const* argv, comm::MpiEnvironment& environment, Clock::time_point start,
        ConfigReader& configs);

}  // namespace tandem::apps
