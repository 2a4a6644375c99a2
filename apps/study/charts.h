// The pictures of a study.
#pragma once

#include "apps/study/results.h"
#include "tandem/train/plot/bars.h"
#include "tandem/train/plot/line_chart.h"

#include <string>

namespace tandem::study {

/// "test accuracy over epochs"
std::string title_of(const Plot& plot);

/// What the names of bars are made of, "variant · batch-size"; "" where a name says it itself, and of other plots.
std::string bar_names(const Results& results, const Plot& plot);

/// A bar for each point that is shown: its mean, with one standard deviation where there are several seeds.
train::plot::BarChart bar_chart(const Results& results, const Plot& plot);

/// Curves: a line for each point over epochs. Line: over plot.over, a line for each combination of what else is varied.
/// Bands are one standard deviation.
train::plot::LineChart line_chart(const Results& results, const Plot& plot);

/// As an SVG for a page.
std::string picture_of(const Results& results, const Plot& plot);

}  // namespace tandem::study
