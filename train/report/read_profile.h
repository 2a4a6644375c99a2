// profile.json
#pragma once

#include "tandem/train/report/run_data.h"

#include <string>

namespace tandem::train::report {

/// Throws Error that names the file, and what in it is not as profile_json() writes it.
Profile read_profile(const std::string& path);

}  // namespace tandem::train::report
