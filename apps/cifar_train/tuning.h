// --autotune and --tuning-file: code for convolutions that was chosen by time.
#pragma once

#include "settings.h"

#include <string>

namespace tandem::apps {

/// Lets convolutions run by what was measured, before or from now on. Returns what is to be said about it, or "".
std::string start_tuning(const Settings& settings, Device device);

/// Keeps what was measured, and tells it, also where it cannot be kept: returns why, or "". For rank 0.
std::string finish_tuning(const Settings& settings, Device device);

}  // namespace tandem::apps
