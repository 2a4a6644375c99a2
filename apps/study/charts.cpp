// Bars, curves and lines, by train/plot.
#include "apps/study/charts.h"

#include "apps/study/reading.h"
#include "apps/study/run_lines.h"
#include "tandem/core/error.h"
#include "tandem/core/number_text.h"
#include "tandem/train/plot/palette.h"
#include "tandem/train/plot/svg.h"
#include "tandem/train/report/comparison.h"
#include "tandem/train/report/page.h"
#include "tandem/train/report/short_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

namespace tandem::study {
namespace {

using train::plot::LineChart;
using train::plot::Series;
using train::plot::Unit;
using train::report::kChartWidth;

std::size_t index_of(const Results& results, const std::string& measure) {
  for (std::size_t i = 0; i < results.measures.size(); ++i)
    if (results.measures[i]->name == measure) return i;
  fail("study {}: {} is plotted and not measured", results.plan.study.name, measure);
}

std::vector<std::string> short_labels(const std::vector<std::string>& names) {
  return train::report::short_names(
      names, [&](const std::string& name) { return train::plot::fits_beside_lines(name, names.size(), kChartWidth); });
}

void name_series(LineChart& chart, const std::vector<std::string>& names) {
  const std::vector<std::string> labels = short_labels(names);
  for (std::size_t i = 0; i < labels.size(); ++i) chart.series[i].name = labels[i];
}

LineChart curves(const Results& results, const Measure& measure) {
  LineChart chart;
  chart.x = {.title = "epoch", .whole = true};
  chart.y.unit = measure.unit;
  std::vector<std::string> names;
  for (const std::size_t i : results.shown) {
    train::report::RunGroup group;
    for (const SeedResult& seed : results.points[i].seeds)
      if (seed.run.data && is_done(seed.run.outcome)) group.runs.push_back(&*seed.run.data);
    if (group.runs.empty()) continue;
    chart.series.push_back(train::report::pooled(group, names.size(), measure.curve));
    names.push_back(results.plan.points[i].label);
  }
  name_series(chart, names);
  return chart;
}

/// A line that has no points yet, told from the others by colour and dashes.
Series series_of(std::size_t number) {
  Series series{"", train::plot::series_colour(number), {}, {}};
  series.dashed = train::plot::is_series_dashed(number);
  return series;
}

/// A logarithmic axis where the largest value is so many times the smallest, or more.
bool suits_logarithm(const std::vector<Series>& all, std::vector<double> Series::* values, double times) {
  double least = std::numeric_limits<double>::infinity(), most = 0.0;
  for (const Series& series : all) {
    for (const double value : series.*values) {
      if (!std::isfinite(value)) continue;
      least = std::min(least, value);
      most = std::max(most, value);
    }
  }
  return least > 0.0 && most >= times * least;
}

void sort_by_x(Series& series) {
  std::vector<std::size_t> order(series.x.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::sort(order, {}, [&](std::size_t i) { return series.x[i]; });
  for (auto* const values : {&series.x, &series.y, &series.low, &series.high}) {
    std::vector<double> sorted;
    for (const std::size_t i : order) sorted.push_back((*values)[i]);
    *values = std::move(sorted);
  }
}

LineChart over_dimension(const Results& results, const Plot& plot, std::size_t index) {
  LineChart chart;
  chart.x = {.title = plot.over};
  chart.y.unit = results.measures[index]->unit;
  std::vector<Settings> others;
  std::vector<std::string> names;
  for (const std::size_t i : results.shown) {
    Settings rest = results.plan.points[i].coordinates;
    const auto x = parse_number<double>(value_of(rest, plot.over));
    if (!x) continue;  // a variant that does not vary it
    std::erase_if(rest, [&](const auto& coordinate) {
      return coordinate.first == plot.over || coordinate.first == results.plan.study.best_of;
    });
    auto found = std::ranges::find(others, rest);
    if (found == others.end()) {
      found = others.insert(found, rest);
      names.push_back(label_of(rest));
      chart.series.push_back(series_of(names.size() - 1));
    }
    Series& series = chart.series[static_cast<std::size_t>(found - others.begin())];
    const Sample& sample = results.points[i].samples[index];
    const double spread = sample.count > 1 ? sample.deviation : 0.0;
    series.x.push_back(*x);
    series.y.push_back(sample.mean);
    series.low.push_back(sample.mean - spread);
    series.high.push_back(sample.mean + spread);
  }
  for (Series& series : chart.series) sort_by_x(series);
  constexpr double kWideInX = 8.0, kWideInY = 50.0;
  chart.x.logarithmic = suits_logarithm(chart.series, &Series::x, kWideInX);
  if (plot.over.ends_with("-bytes")) chart.x.unit = Unit::bytes;
  const bool is_share = chart.y.unit == Unit::percent;
  chart.y.logarithmic = chart.x.logarithmic && !is_share && suits_logarithm(chart.series, &Series::y, kWideInY);
  if (names.size() > 1) name_series(chart, names);
  return chart;
}

/// Means over seeds. On a logarithmic axis a value of 0 is a gap.
LineChart lines_of_runs(const Results& results, const RunLine& line) {
  LineChart chart;
  chart.x = {.title = std::string(line.axis), .whole = true};
  chart.x.logarithmic = line.kind == PlotKind::ranks;
  chart.y.unit = line.unit;
  chart.y.logarithmic = line.is_logarithmic;
  if (!line.is_logarithmic) chart.y.include(0.0);
  std::vector<std::string> names;
  for (const std::size_t i : results.shown) {
    std::map<double, std::vector<double>> values;  // by x, of each seed
    for (const SeedResult& seed : results.points[i].seeds) {
      if (!seed.run.data || !is_done(seed.run.outcome)) continue;
      for (const auto& [x, y] : line.points(*seed.run.data)) values[x].push_back(y);
    }
    if (values.empty()) continue;
    Series series = series_of(names.size());
    for (const auto& [x, all] : values) {
      series.x.push_back(x);
      series.y.push_back(sample_of(all).mean);
    }
    chart.series.push_back(std::move(series));
    names.push_back(results.plan.points[i].label);
  }
  name_series(chart, names);
  return chart;
}

/// A bar's name: of several coordinates the values alone, which bar_names() tells the names of.
std::string bar_name(const Point& point) {
  if (point.coordinates.size() < 2) return point.label;
  std::string name;
  for (const auto& [key, value] : point.coordinates) name += (name.empty() ? "" : " \xC2\xB7 ") + value;
  return name;
}

}  // namespace

std::string bar_names(const Results& results, const Plot& plot) {
  std::string names;
  if (plot.kind != PlotKind::bars || dimensions_of(results.plan).size() < 2) return names;
  for (const std::string& name : dimensions_of(results.plan)) names += (names.empty() ? "" : " \xC2\xB7 ") + name;
  return names;
}

std::string title_of(const Plot& plot) {
  if (is_line_of_runs(plot.kind)) return std::string(find_run_line(plot.kind, plot.measure).title);
  const std::string title(find_measure(plot.measure).title);
  if (plot.kind == PlotKind::curves) return title + " over epochs";
  return plot.kind == PlotKind::line ? title + " over " + plot.over : title;
}

train::plot::BarChart bar_chart(const Results& results, const Plot& plot) {
  const std::size_t index = index_of(results, plot.measure);
  train::plot::BarChart chart{{}, train::plot::kSeries[0]};
  for (const std::size_t i : results.shown) {
    const Sample& sample = results.points[i].samples[index];
    chart.bars.push_back({bar_name(results.plan.points[i]), sample.mean,
                          sample_text(sample, results.measures[index]->unit),
                          sample.count > 1 ? sample.deviation : 0.0});
  }
  return chart;
}

LineChart line_chart(const Results& results, const Plot& plot) {
  if (is_line_of_runs(plot.kind)) return lines_of_runs(results, find_run_line(plot.kind, plot.measure));
  return plot.kind == PlotKind::curves ? curves(results, find_measure(plot.measure))
                                       : over_dimension(results, plot, index_of(results, plot.measure));
}

std::string picture_of(const Results& results, const Plot& plot) {
  using namespace train::plot;
  const auto draw_in = [&](double height, const auto& draw) {
    return svg_picture({kChartWidth, height}, title_of(plot), SvgKind::inline_,
                       [&](Canvas& canvas) { draw(canvas, Box{0.0, 0.0, kChartWidth, height}); });
  };
  if (plot.kind == PlotKind::bars) {
    const BarChart chart = bar_chart(results, plot);
    return draw_in(height_of(chart), [&](Canvas& canvas, const Box& box) { draw_bar_chart(canvas, box, chart); });
  }
  const LineChart chart = line_chart(results, plot);
  constexpr double kHeight = 226.0;
  return draw_in(kHeight + height_of_names(chart, kChartWidth),
                 [&](Canvas& canvas, const Box& box) { draw_line_chart(canvas, box, chart); });
}

}  // namespace tandem::study
