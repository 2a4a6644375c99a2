// Series from columns.
#include "tandem/train/report/curves.h"

#include "tandem/train/plot/palette.h"
#include "tandem/train/plot/text_width.h"

#include <algorithm>
#include <cmath>

namespace tandem::train::report {
namespace {

constexpr double kLogarithmicFrom = 20.0;

plot::LineChart epoch_chart(std::string title) {
  plot::LineChart chart;
  chart.title = std::move(title);
  chart.x = {.title = "epoch", .whole = true};
  return chart;
}

void add(plot::LineChart& chart, const RunData& run, const char* name, const plot::Colour& colour,
         double Epoch::* figure) {
  std::vector<double> values = column(run.epochs, figure);
  if (!has_any(values)) return;
  chart.series.push_back({name, colour, numbers_of(run.epochs), std::move(values)});
}

/// Figures of steps, over epochs where it is known how many steps these have.
plot::Series step_series(const RunData& run, double Step::* figure, const plot::Colour& colour) {
  plot::Series series;
  series.colour = colour;
  for (const Step& step : run.steps) {
    series.x.push_back(step.step / run.steps_per_epoch);
    series.y.push_back(step.*figure);
  }
  return series;
}

/// Of figures of steps: from the beginning to the last epoch, also where the last step that was logged is not its end.
void include_epochs(plot::LineChart& chart, const RunData& run) {
  chart.x.include(0.0);
  if (!run.epochs.empty()) chart.x.include(static_cast<double>(run.epochs.back().epoch));
}

bool has_steps(const RunData& run) { return !run.steps.empty() && run.steps_per_epoch >= 1.0; }

}  // namespace

plot::LineChart loss_chart(const RunData& run) {
  plot::LineChart chart = epoch_chart("Loss");
  if (has_steps(run)) {
    plot::Series steps = step_series(run, &Step::loss, plot::kTraining);
    steps.faint = true;
    include_epochs(chart, run);
    if (has_any(steps.y)) chart.series.push_back(std::move(steps));
  }
  add(chart, run, "train", plot::kTraining, &Epoch::train_loss);
  add(chart, run, "validation", plot::kValidation, &Epoch::validation_loss);
  add(chart, run, "test", plot::kTest, &Epoch::test_loss);
  double least = HUGE_VAL, most = 0.0;
  for (const plot::Series& series : chart.series) {
    for (const double value : series.y) {
      if (!(value > 0.0) || !std::isfinite(value)) continue;
      least = std::min(least, value);
      most = std::max(most, value);
    }
  }
  chart.y.logarithmic = most > kLogarithmicFrom * least;
  return chart;
}

plot::LineChart accuracy_chart(const RunData& run) {
  plot::LineChart chart = epoch_chart("Accuracy");
  chart.y.unit = plot::Unit::percent;
  add(chart, run, "train", plot::kTraining, &Epoch::train_accuracy);
  add(chart, run, "validation", plot::kValidation, &Epoch::validation_accuracy);
  add(chart, run, "test", plot::kTest, &Epoch::test_accuracy);
  return chart;
}

plot::LineChart learning_rate_chart(const RunData& run) {
  plot::LineChart chart = epoch_chart("Learning rate");
  plot::Series steps = has_steps(run) ? step_series(run, &Step::lr, plot::kTraining) : plot::Series();
  if (has_any(steps.y)) {
    chart.series.push_back(std::move(steps));
    include_epochs(chart, run);
  } else {
    add(chart, run, "", plot::kTraining, &Epoch::lr);
  }
  chart.y.include(0.0);
  return chart;
}

plot::LineChart throughput_chart(const RunData& run) {
  plot::LineChart chart = epoch_chart("Images per second, all ranks");
  add(chart, run, "", plot::kTraining, &Epoch::images_per_second);
  chart.y.include(0.0);
  return chart;
}

bool has_figures(const plot::LineChart& chart) {
  return std::ranges::any_of(chart.series, [](const plot::Series& series) { return has_any(series.y); });
}

bool has_line(const plot::LineChart& chart) {
  return std::ranges::any_of(chart.series, [](const plot::Series& series) {
    return std::ranges::count_if(series.y, [](double value) { return std::isfinite(value); }) > 1;
  });
}

std::string title_of(const RunData& run) {
  if (run.model.empty()) return run.name;
  return run.dataset.empty() ? run.model : run.model + " on " + run.dataset;
}

void draw_curves(plot::Canvas& canvas, const RunData& run) {
  const double half = kCurvesSize.width / 2.0, height = kCurvesSize.height - 70.0;
  canvas.text({24.0, 32.0}, plot::cut_to_width(title_of(run), 16.0, kCurvesSize.width - 48.0),
              {plot::kInk, 16.0, plot::Anchor::start, 0.0, true});
  draw_line_chart(canvas, {24.0, 54.0, half - 48.0, height}, loss_chart(run));
  draw_line_chart(canvas, {half + 24.0, 54.0, half - 48.0, height}, accuracy_chart(run));
}

}  // namespace tandem::train::report
