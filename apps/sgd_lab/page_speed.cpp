// What more ranks gain: predicted and measured on one network, and with sliders for others.
#include "apps/sgd_lab/charts.h"
#include "apps/sgd_lab/page_parts.h"
#include "tandem/comm/schedules/segment_options.h"
#include "tandem/train/plot/svg.h"
#include "tandem/train/plot/ticks.h"
#include "tandem/train/report/page.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

namespace tandem::sgd_lab {

namespace {

namespace plot = train::plot;

const std::vector<double> kBatches{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024};

struct Slider {
  std::string id, name;
  std::size_t count, at;
  double value;
};

void add_slider(HtmlWriter& html, const Slider& slider) {
  html.open("div");
  html.element("label", slider.name, {{"for", slider.id}});
  html.element("output", plot::number_text(slider.value), {{"id", slider.id + "-value"}, {"for", slider.id}});
  html.empty_element("input", {{"type", "range"},
                               {"id", slider.id},
                               {"min", "0"},
                               {"max", fmt::format("{}", slider.count - 1)},
                               {"step", "1"},
                               {"value", fmt::format("{}", slider.at)},
                               {"aria-valuetext", plot::number_text(slider.value)}});
  html.close();
}

/// Seconds of computing for an example and a weight, as in the timed steps.
double compute_cost(const Lesson& lesson) {
  const TimedSteps& timed = lesson.timed.front();
  return timed.compute / static_cast<double>(timed.batch) / static_cast<double>(timed.weights);
}

void add_speed_rows(HtmlWriter& html, const SpeedGrid& speed, std::size_t first, double compute) {
  html.open("table", {{"id", "speed"}});
  html.open("tr");
  for (const char* const column : {"ranks", "exchange, ms", "speed-up", "of the ideal"}) html.element("th", column);
  html.close();
  for (std::size_t rank = 0; rank < speed.ranks.size(); ++rank) {
    const int ranks = speed.ranks[rank];
    const double exchange = speed.exchange[first + rank], factor = speed_up(ranks, compute, exchange);
    html.open("tr", {{"data-rank", fmt::format("{}", ranks)}});
    html.element("td", fmt::format("{}", ranks));
    html.element("td", fmt::format("{:.3f}", 1e3 * exchange));
    html.element("td", fmt::format("{:.2f}", factor));
    html.open("td", {{"class", "wide-cell"}});
    html.element("div", "", {{"class", "bar"}, {"style", fmt::format("width: {:.1f}%", 100.0 * factor / ranks)}});
    html.close();
    html.close();
  }
  html.close();
}

void add_sliders(HtmlWriter& html, const Lesson& lesson, const SpeedGrid& grid) {
  constexpr std::size_t kBatch = 6, kWeights = 2, kGigabits = 3, kMicroseconds = 1;
  const double compute = kBatches[kBatch] * static_cast<double>(grid.weights[kWeights]) * compute_cost(lesson);
  train::report::begin_card(html);
  html.element("h3", "Other batches, models and networks");
  html.open("div", {{"class", "sliders"}, {"id", "sliders"}, {"hidden", ""}});
  add_slider(html, {"batch", "Batch of a rank", kBatches.size(), kBatch, kBatches[kBatch]});
  add_slider(html, {"weights", "Weights", grid.weights.size(), kWeights, static_cast<double>(grid.weights[kWeights])});
  add_slider(html, {"gigabits", "Bandwidth, Gbit/s", grid.gigabits.size(), kGigabits, grid.gigabits[kGigabits]});
  add_slider(html, {"microseconds", "Latency, \xC2\xB5s", grid.microseconds.size(), kMicroseconds,
                    grid.microseconds[kMicroseconds]});
  html.close();
  add_speed_rows(html, grid, grid.index(kGigabits, kMicroseconds, kWeights, 0), compute);
  html.open("p", {{"class", "note"}});
  html.text("A rank computes a step for ");
  html.element("span", fmt::format("{:.3f}", 1e3 * compute), {{"id", "compute"}});
  html.text(fmt::format(
      " ms: the batch times the weights times {:.3g} ns, as measured here. Exchange: predicted for ranks on hosts of "
      "their own, by the fastest of the algorithms that by-cost chooses from; nothing is computed meanwhile. At most "
      "{} segments of {} KiB are on their way at once between two ranks: where a latency is longer than they take, "
      "large data wait for it several times. Speed-up: N ranks compute N batches in the time of computing and "
      "exchanging. Without the script of this page the table is that of a batch of {}, {} weights, {} Gbit/s and {} "
      "\xC2\xB5s.",
      1e9 * compute_cost(lesson), comm::SegmentOptions{}.depth, comm::SegmentOptions{}.segment_bytes / 1024,
      kBatches[kBatch], plot::number_text(static_cast<double>(grid.weights[kWeights])), grid.gigabits[kGigabits],
      grid.microseconds[kMicroseconds]));
  html.close();
  html.close();
}

void add_curves(HtmlWriter& html, const Lesson& lesson) {
  constexpr plot::Size kSize{train::report::kChartWidth, 360.0};
  plot::LineChart chart = speed_chart(lesson);
  train::report::begin_card(html);
  html.element("h3", std::exchange(chart.title, ""));
  html.markup(plot::svg_picture(
      kSize, "Speed-ups by the number of ranks", plot::SvgKind::inline_,
      [&](plot::Canvas& canvas) { draw_line_chart(canvas, {0.0, 0.0, kSize.width, kSize.height}, chart); }));
  add_note(
      html,
      "Lines are predicted, with the exchange behind the backward pass and beside it. Dots are what was timed, both "
      "ways, and the exchange behind by the virtual clock.");
  html.close();
}

}  // namespace

void add_speed_up(HtmlWriter& html, const Lesson& lesson, const SpeedGrid& grid) {
  html.element("h2", "7. What more ranks gain");
  html.element("p", speed_text(lesson));
  html.open("div", {{"class", "grid"}});
  add_curves(html, lesson);
  add_sliders(html, lesson, grid);
  html.close();
  add_table(html, speed_table(lesson));
}

std::string slider_data(const Lesson& lesson, const SpeedGrid& grid) {
  return fmt::format(
      "const speed = {{ batch: [{}], weights: [{}], gigabits: [{}], microseconds: [{}], ranks: [{}], "
      "compute: {:.17g},\n"
      "exchange: [{:.9g}] }};",
      fmt::join(kBatches, ","), fmt::join(grid.weights, ","), fmt::join(grid.gigabits, ","),
      fmt::join(grid.microseconds, ","), fmt::join(grid.ranks, ","), compute_cost(lesson),
      fmt::join(grid.exchange, ","));
}

}  // namespace tandem::sgd_lab
