// How large gradients, updates and weights of each layer were, and how many ReLUs were dead, epoch by epoch.
#include "tandem/train/plot/palette.h"
#include "tandem/train/plot/ticks.h"
#include "tandem/train/report/curves.h"
#include "tandem/train/report/page.h"
#include "tandem/train/report/sections.h"

#include <algorithm>
#include <map>

namespace tandem::train::report {
namespace {

/// A line for each name, over epochs.
template <typename Item>
plot::LineChart chart_of(const RunData& run, const char* title, std::vector<Item> Epoch::* items,
                         double (*figure)(const Item&)) {
  plot::LineChart chart;
  chart.title = title;
  chart.x = {.title = "epoch", .whole = true};
  std::map<std::string, std::size_t> places;
  for (const Epoch& epoch : run.epochs) {
    for (const Item& item : epoch.*items) {
      const auto [place, is_new] = places.emplace(item.name, chart.series.size());
      if (is_new) {
        chart.series.push_back({item.name, plot::series_colour(place->second), {}, {}});
        chart.series.back().dashed = place->second / plot::kSeries.size() % 2 == 1;  // the colours come again
      }
      plot::Series& series = chart.series[place->second];
      series.x.push_back(static_cast<double>(epoch.epoch));
      series.y.push_back(figure(item));
    }
  }
  return chart;
}

plot::LineChart norms_of(const RunData& run, const char* title, double (*figure)(const Layer&)) {
  plot::LineChart chart = chart_of(run, title, &Epoch::layers, figure);
  chart.y.logarithmic = true;  // layers are of very different size
  return chart;
}

plot::LineChart dead_relus(const RunData& run) {
  plot::LineChart chart = chart_of<Relu>(run, "Dead channels of ReLUs", &Epoch::relus,
                                         [](const Relu& relu) { return relu.percent_dead(); });
  chart.y.unit = plot::Unit::percent;
  chart.y.include(0.0);
  return chart;
}

}  // namespace

void add_layers(HtmlWriter& html, const RunData& run) {
  const plot::LineChart charts[] = {
      norms_of(run, "Norm of the gradient", [](const Layer& layer) { return layer.gradient_norm; }),
      norms_of(run, "Norm of the weights", [](const Layer& layer) { return layer.weight_norm; }),
      norms_of(run, "Update, as a share of the weights",
               [](const Layer& layer) { return layer.update_norm / layer.weight_norm; }),
      dead_relus(run)};
  if (!std::ranges::any_of(charts, has_figures)) return;
  html.element("h2", "Layers");
  html.open("div", {{"class", "grid"}});
  for (const plot::LineChart& chart : charts) {
    if (has_figures(chart)) add_chart(html, chart);
  }
  html.close();
  html.element("p",
               "Norms are of each epoch's last step; the gradient is that before clipping. A channel is dead that "
               "gives 0 for every "
               "image of the evaluation behind the epoch.",
               {{"class", "note"}});
}

}  // namespace tandem::train::report
