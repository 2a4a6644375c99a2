// Charts of a run's figures over its epochs.
#pragma once

#include "tandem/train/plot/line_chart.h"
#include "tandem/train/report/run_data.h"

namespace tandem::train::report {

/// Of training, validation and test, as far as there are such figures; losses also of single steps, where the log has
/// these. On a logarithmic axis where the largest loss is more than 20 times the smallest.
plot::LineChart loss_chart(const RunData& run);
plot::LineChart accuracy_chart(const RunData& run);
/// Over steps where the log has these, else over epochs.
plot::LineChart learning_rate_chart(const RunData& run);
plot::LineChart throughput_chart(const RunData& run);

bool has_figures(const plot::LineChart& chart);
/// Whether some series has two figures or more: a single one says no more than a number does.
bool has_line(const plot::LineChart& chart);

/// Loss and accuracy beside each other under a title: curves.svg and curves.png.
inline constexpr plot::Size kCurvesSize{960.0, 380.0};
void draw_curves(plot::Canvas& canvas, const RunData& run);

/// "small_cnn on cifar10"
std::string title_of(const RunData& run);

}  // namespace tandem::train::report
