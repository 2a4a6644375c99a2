// Measured choices of convolution code, kept in a file from run to run.
#pragma once

#include "tandem/core/device.h"

#include <string>

namespace tandem::train {

/// All that the times depend on: device, threads, and the versions of this build. In a file of another machine nothing
/// holds here.
std::string tuning_machine(Device device);

/// Hands what the file holds to kernels::conv_tuner(). Returns "" if that worked or there is no such file yet, else why
/// the file is ignored, beginning with its name: damaged, of another machine, or of another version of the format.
std::string load_tuning(const std::string& path, const std::string& machine);

/// Whether save_tuning() may take this name: of a tuning file, whole or damaged, of an empty one, or of none.
bool can_hold_tuning(const std::string& path);

/// Writes what conv_tuner() knows: all of it or, throwing Error, nothing.
/// Example:
///     const std::string machine = tuning_machine(Device{});
///     const std::string problem = load_tuning("tuning.json", machine);  // "": what the file holds is used from now on
///     save_tuning("tuning.json", machine);                              // after training
void save_tuning(const std::string& path, const std::string& machine);

/// What conv_tuner() knows, as a table: a line per pass with the time of each candidate, the chosen one first.
std::string tuning_table();

}  // namespace tandem::train
