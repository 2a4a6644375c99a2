// The report of one or several studies as one HTML page, which loads nothing.
#pragma once

#include "apps/study/results.h"

#include <string>
#include <vector>

namespace tandem::study {

std::string study_page(const std::vector<Results>& studies);

}  // namespace tandem::study
