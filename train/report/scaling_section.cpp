// What more ranks would gain, predicted from the run's own steps.
#include "tandem/train/plot/palette.h"
#include "tandem/train/plot/ticks.h"
#include "tandem/train/report/page.h"
#include "tandem/train/report/sections.h"

#include <fmt/format.h>

namespace tandem::train::report {
namespace {

using plot::number_text;
using plot::Unit;

void add_curve(HtmlWriter& html, const PredictedScaling& scaling) {
  plot::LineChart chart;
  chart.title = "Images per second, beside one rank";
  chart.x.title = "ranks, each on a host of its own";
  chart.x.logarithmic = true;
  chart.y.logarithmic = true;
  plot::Series ideal{.name = "nothing waited for", .colour = plot::kMuted, .x = {}, .y = {}, .dashed = true},
      predicted{.name = "predicted", .colour = plot::kTraining, .x = {}, .y = {}};
  for (const PredictedScaling::Ranks& of : scaling.of) {
    ideal.x.push_back(of.ranks);
    ideal.y.push_back(of.ranks);
    predicted.x.push_back(of.ranks);
    predicted.y.push_back(of.speed_up);
  }
  chart.series = {predicted, ideal};
  add_chart(html, chart);
}

void add_steps(HtmlWriter& html, const PredictedScaling& scaling) {
  html.element("h3", "A step on more ranks");
  html.open("table");
  html.open("tr");
  for (const char* const head : {"ranks", "exchange", "of it waited for", "images/s"})
    html.element("th", head, {{"class", "n"}});
  html.close();
  for (const PredictedScaling::Ranks& of : scaling.of) {
    html.open("tr");
    for (const std::string& cell :
         {number_text(of.ranks), number_text(of.exchange_seconds, Unit::seconds),
          number_text(of.waited_seconds, Unit::seconds), fmt::format("{:.3g} x", of.speed_up)})
      html.element("td", cell, {{"class", "n"}});
    html.close();
  }
  html.close();
  html.element(
      "p",
      fmt::format(
          "A step of this run takes a rank {} without waiting, and {} of it can hide an exchange. Between hosts "
          "a message takes {} and goes at {}/s: {}. Each rank keeps its images of a step.",
          number_text(scaling.step_seconds, Unit::seconds), number_text(scaling.window_seconds, Unit::seconds),
          number_text(scaling.latency_seconds, Unit::seconds),
          fmt::format("{:.2g} GB", scaling.bytes_per_second * 1e-9),
          scaling.simulated     ? "of the network that was simulated"
          : scaling.usual_costs ? "usual figures of Ethernet at 10 Gbit/s, not measured"
                                : "measured"),
      {{"class", "note"}});
}

}  // namespace

void add_scaling(HtmlWriter& html, const RunData& run) {
  if (!run.scaling) return;
  html.element("h2", "More ranks, predicted");
  html.open("div", {{"class", "flow"}});
  add_curve(html, *run.scaling);
  begin_card(html);
  add_steps(html, *run.scaling);
  html.close();
  html.close();
}

}  // namespace tandem::train::report
