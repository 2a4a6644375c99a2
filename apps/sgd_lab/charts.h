// The charts of a lesson.
#pragma once

#include "apps/sgd_lab/lesson.h"
#include "tandem/train/plot/line_chart.h"

#include <string>
#include <vector>

namespace tandem::sgd_lab {

/// Of two runs by step.
train::plot::LineChart loss_chart(const Lesson& lesson, const BrokenRun& run);
train::plot::LineChart distance_chart(const Lesson& lesson, const BrokenRun& run);

/// Predicted speed-ups as lines, timed ones and those by the virtual clock as dots.
train::plot::LineChart speed_chart(const Lesson& lesson);

/// Losses by examples seen, a line for each size of the batch.
train::plot::LineChart batch_chart(const std::string& title, const std::vector<BatchRun>& runs);

}  // namespace tandem::sgd_lab
