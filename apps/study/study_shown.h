// What a study's file says of its figures: measures, plots, the best value, the baseline.
#pragma once

#include "apps/study/study.h"
#include "apps/study/study_toml.h"

namespace tandem::study {

/// Reads it into a study whose runs are known. Throws Error, with the line, for what is not measured or not varied.
void read_shown(const StudyToml& file, const toml::table& root, Study& study);

}  // namespace tandem::study
