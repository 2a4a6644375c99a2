#include "apps/sgd_lab/charts.h"

#include "tandem/train/plot/palette.h"

#include <fmt/format.h>

#include <limits>
#include <numeric>

namespace tandem::sgd_lab {

namespace {

namespace plot = train::plot;

plot::LineChart chart_of_steps(const std::string& title, const std::vector<double>& intact,
                               const std::vector<double>& broken) {
  std::vector<double> steps(intact.size());
  std::iota(steps.begin(), steps.end(), 0.0);
  plot::LineChart chart{.title = title, .x = {.title = "step", .whole = true}, .y = {}, .series = {}};
  chart.series.push_back({.name = "intact", .colour = plot::series_colour(0), .x = steps, .y = intact});
  chart.series.push_back({.name = "broken", .colour = plot::series_colour(1), .x = steps, .y = broken});
  return chart;
}

plot::Series line_of(const std::string& name, std::size_t colour, const std::vector<comm::SpeedUp>& speed_ups) {
  plot::Series series{.name = name, .colour = plot::series_colour(colour), .x = {}, .y = {}};
  for (const comm::SpeedUp& speed : speed_ups) {
    series.x.push_back(speed.ranks);
    series.y.push_back(speed.factor);
  }
  return series;
}

/// Apart from each other: between gaps.
void add_dot(plot::Series& series, double x, double y) {
  constexpr double kGap = std::numeric_limits<double>::quiet_NaN();
  for (const auto& [at, value] : {std::pair{kGap, kGap}, std::pair{x, y}, std::pair{kGap, kGap}}) {
    series.x.push_back(at);
    series.y.push_back(value);
  }
}

}  // namespace

plot::LineChart loss_chart(const Lesson& lesson, const BrokenRun& run) {
  return chart_of_steps("Loss on held-out examples, mean of replicas", lesson.losses, run.losses);
}

plot::LineChart distance_chart(const Lesson& lesson, const BrokenRun& run) {
  plot::LineChart chart =
      chart_of_steps("Largest distance between weights of replicas", lesson.distances, run.distances);
  chart.y.least = 0.0;
  chart.y.most = 1.0;  // also where all are 0
  return chart;
}

plot::LineChart speed_chart(const Lesson& lesson) {
  const SpeedUps& speed_ups = lesson.speed_ups;
  plot::LineChart chart{.title = "Examples per second, beside one rank",
                        .x = {.title = "ranks, each on a host of its own", .logarithmic = true},
                        .y = {.title = "", .logarithmic = true},
                        .series = {}};
  plot::Series ideal{.name = "nothing waited for", .colour = plot::kMuted, .x = {}, .y = {}, .dashed = true};
  plot::Series clock{.name = "virtual clock", .colour = plot::series_colour(2), .x = {}, .y = {}};
  plot::Series measured{.name = "timed", .colour = plot::series_colour(5), .x = {}, .y = {}};
  for (const comm::SpeedUp& speed : speed_ups.behind) {
    ideal.x.push_back(speed.ranks);
    ideal.y.push_back(speed.ranks);
  }
  for (const VirtualExchange& exchange : speed_ups.virtual_exchanges)
    add_dot(clock, exchange.ranks, speed_up(exchange.ranks, lesson.timed.front().compute, exchange.seconds));
  for (const TimedSteps& timed : lesson.timed)
    for (const ExchangeWay* const way : {&timed.behind, &timed.beside})
      add_dot(measured, timed.ranks, measured_speed_up(timed, *way));
  chart.series = {ideal, line_of("beside", 0, speed_ups.beside), line_of("behind", 1, speed_ups.behind), clock,
                  measured};
  return chart;
}

plot::LineChart batch_chart(const std::string& title, const std::vector<BatchRun>& runs) {
  plot::LineChart chart{.title = title, .x = {.title = "examples seen", .whole = true}, .y = {}, .series = {}};
  for (std::size_t i = 0; i < runs.size(); ++i)
    chart.series.push_back({.name = fmt::format("{} x batch", runs[i].factor),
                            .colour = plot::series_colour(i),
                            .x = runs[i].examples,
                            .y = runs[i].losses});
  return chart;
}

}  // namespace tandem::sgd_lab
