// evaluation.json: the last evaluation in detail.
#pragma once

#include "tandem/train/report/run_data.h"

#include <string>

namespace tandem::train::report {

/// Fields that are missing are left out. Throws Error, which names the file and what is wrong with it, for what is no
/// JSON object, for tables that do not fit each other, and for images that are no PNG files.
Evaluation read_evaluation(const std::string& path);

}  // namespace tandem::train::report
