// How large gradients, updates and weights of each layer were, epoch by epoch.
#include "tandem/train/plot/palette.h"
#include "tandem/train/report/curves.h"
#include "tandem/train/report/page.h"
#include "tandem/train/report/sections.h"

#include <algorithm>
#include <map>

namespace tandem::train::report {
namespace {

plot::LineChart chart_of(const RunData& run, const char* title, double (*figure)(const Layer&)) {
  plot::LineChart chart;
  chart.title = title;
  chart.x = {.title = "epoch", .whole = true};
  chart.y.logarithmic = true;  // layers are of very different size
  std::map<std::string, std::size_t> places;
  for (const Epoch& epoch : run.epochs) {
    for (const Layer& layer : epoch.layers) {
      const auto [place, is_new] = places.emplace(layer.name, chart.series.size());
      if (is_new) {
        chart.series.push_back({layer.name, plot::series_colour(place->second), {}, {}});
        chart.series.back().dashed = place->second / plot::kSeries.size() % 2 == 1;  // the colours come again
      }
      plot::Series& series = chart.series[place->second];
      series.x.push_back(static_cast<double>(epoch.epoch));
      series.y.push_back(figure(layer));
    }
  }
  return chart;
}

}  // namespace

void add_layers(HtmlWriter& html, const RunData& run) {
  const plot::LineChart charts[] = {
      chart_of(run, "Norm of the gradient", [](const Layer& layer) { return layer.gradient_norm; }),
      chart_of(run, "Norm of the weights", [](const Layer& layer) { return layer.weight_norm; }),
      chart_of(run, "Update, as a share of the weights",
               [](const Layer& layer) { return layer.update_norm / layer.weight_norm; })};
  if (!std::ranges::any_of(charts, has_figures)) return;
  html.element("h2", "Layers");
  html.open("div", {{"class", "grid"}});
  for (const plot::LineChart& chart : charts) {
    if (has_figures(chart)) add_chart(html, chart);
  }
  html.close();
  html.element("p", "At each epoch's last step; the gradient is that before clipping.", {{"class", "note"}});
}

}  // namespace tandem::train::report
