// With which options a study was run last, so that its report can be made again without naming them.
#pragma once

#include "apps/study/plan.h"

#include <optional>
#include <string>

namespace tandem::study {

/// Writes options.json into a study's folder of tables, which is made. Throws Error where it cannot be written.
void keep_options(const PlanOptions& options, const std::string& folder);

/// What keep_options() wrote there; nothing where it did not. Throws Error for a damaged file.
std::optional<PlanOptions> kept_options(const std::string& folder);

}  // namespace tandem::study
