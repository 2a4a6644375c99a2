// environment.json as names and values for people.
#pragma once

#include "tandem/train/report/json_fields.h"

#include <string>

namespace tandem::train::report {

/// In the order of the file: "exit_code" is "exit code", a device is one line, and what has no words of its own here
/// is told by its names, with blanks between them.
TextTable environment_table(const Json& environment);

/// Of the software that a run was made with: "oneDNN" for "onednn".
std::string name_of_version(const std::string& key);

/// "2026-01-31 12:00 UTC" of "2026-01-31T12:00:00Z"; other texts as they are.
std::string time_text(const std::string& time);

}  // namespace tandem::train::report
