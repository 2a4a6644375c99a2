// A table, of what the last epoch and the result of a run have in the log.
#include "apps/study/run_lines.h"

#include "tandem/core/error.h"
#include "tandem/core/suggest.h"

#include <algorithm>
#include <string>

namespace tandem::study {
namespace {

using train::plot::Unit;
using train::report::Epoch;
using train::report::Layer;
using train::report::Relu;
using train::report::RunData;
using Points = std::vector<std::pair<double, double>>;

/// Of the last epoch's items, numbered from 1.
template <typename Item>
Points numbered(const RunData& run, std::vector<Item> Epoch::* items, const auto& figure) {
  Points points;
  if (run.epochs.empty()) return points;
  for (const Item& item : run.epochs.back().*items)
    points.emplace_back(static_cast<double>(points.size() + 1), figure(item));
  return points;
}

template <double Layer::* Norm>
Points norms(const RunData& run) {
  return numbered(run, &Epoch::layers, [](const Layer& layer) { return layer.*Norm; });
}

Points dead_relus(const RunData& run) {
  return numbered(run, &Epoch::relus, [](const Relu& relu) { return relu.percent_dead(); });
}

Points predicted_speed_up(const RunData& run) {
  Points points;
  if (!run.scaling) return points;
  for (const auto& ranks : run.scaling->of) points.emplace_back(ranks.ranks, ranks.speed_up);
  return points;
}

constexpr std::string_view kWithWeights = "layer with weights";
constexpr RunLine kLines[] = {
    {PlotKind::layers, "gradient_norm", "gradient norm of each layer, from the first", kWithWeights, "log-norms",
     Unit::none, true, norms<&Layer::gradient_norm>},
    {PlotKind::layers, "update_norm", "update norm of each layer, from the first", kWithWeights, "log-norms",
     Unit::none, true, norms<&Layer::update_norm>},
    {PlotKind::layers, "weight_norm", "weight norm of each layer, from the first", kWithWeights, "log-norms",
     Unit::none, true, norms<&Layer::weight_norm>},
    {PlotKind::layers, "dead_relus", "dead channels of each ReLU, from the first", "ReLU", "log-dead-relus",
     Unit::percent, false, dead_relus},
    {PlotKind::ranks, "predicted_speed_up", "predicted speed-up over ranks", "ranks, each on a host of its own", "",
     Unit::none, true, predicted_speed_up},
};

}  // namespace

const RunLine& find_run_line(PlotKind kind, std::string_view name) {
  std::vector<std::string> names;
  for (const RunLine& line : kLines) {
    if (line.kind != kind) continue;
    if (line.name == name) return line;
    names.emplace_back(line.name);
  }
  fail("{}", unknown_name(kind == PlotKind::layers ? "figure of layers" : "figure of ranks", name, names));
}

}  // namespace tandem::study
