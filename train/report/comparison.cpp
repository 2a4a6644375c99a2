// Groups, their settings, curves and results.
#include "tandem/train/report/comparison.h"

#include "tandem/train/plot/palette.h"
#include "tandem/train/plot/ticks.h"
#include "tandem/train/report/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace tandem::train::report {
namespace {

using plot::number_text;
using plot::Unit;

/// Settings that do not change what is learned.
bool bears_on_result(const std::string& name) {
  static constexpr const char* kOthers[] = {"seed",         "run-dir", "log",      "log-every",
                                            "save-weights", "resume",  "progress", "checkpoint-every",
                                            "keep",         "best-by", "data",     "tuning-file"};
  return std::ranges::find(kOthers, name) == std::end(kOthers);
}

TextTable settings_of(const RunData& run) {
  TextTable settings{{"model", run.model}, {"dataset", run.dataset}};
  for (const auto& entry : run.config) {
    if (bears_on_result(entry.first) && entry.first != "model" && entry.first != "dataset") settings.push_back(entry);
  }
  if (std::isfinite(run.ranks)) settings.emplace_back("ranks", number_text(run.ranks));
  return settings;
}

std::string value_in(const TextTable& table, const std::string& name) {
  for (const auto& [key, value] : table) {
    if (key == name) return value;
  }
  return "";
}

/// The mean of a figure over the runs of a group, epoch by epoch, with a band of one standard deviation.
plot::Series pooled(const RunGroup& group, std::size_t index, double Epoch::* figure) {
  std::map<std::int64_t, std::vector<double>> by_epoch;
  for (const RunData* const run : group.runs) {
    for (const Epoch& epoch : run->epochs) by_epoch[epoch.epoch].push_back(epoch.*figure);
  }
  plot::Series series;
  series.name = group.name;
  series.colour = plot::series_colour(index);
  for (const auto& [epoch, values] : by_epoch) {
    const Spread spread = spread_of(values);
    series.x.push_back(static_cast<double>(epoch));
    series.y.push_back(spread.mean);
    if (group.runs.size() < 2) continue;
    series.low.push_back(spread.mean - spread.deviation);
    series.high.push_back(spread.mean + spread.deviation);
  }
  return series;
}

struct Figure {
  const char* title;
  double Epoch::* field;
  Unit unit;
};

constexpr Figure kFigures[] = {{"Test accuracy", &Epoch::test_accuracy, Unit::percent},
                               {"Validation accuracy", &Epoch::validation_accuracy, Unit::percent},
                               {"Test loss", &Epoch::test_loss, Unit::none},
                               {"Validation loss", &Epoch::validation_loss, Unit::none},
                               {"Training loss", &Epoch::train_loss, Unit::none},
                               {"Training accuracy", &Epoch::train_accuracy, Unit::percent}};

double last_of(const RunData& run, double Epoch::* figure) {
  for (std::size_t i = run.epochs.size(); i-- > 0;) {
    if (std::isfinite(run.epochs[i].*figure)) return run.epochs[i].*figure;
  }
  return kMissing;
}

Spread last_of(const RunGroup& group, double Epoch::* figure) {
  std::vector<double> values;
  for (const RunData* const run : group.runs) values.push_back(last_of(*run, figure));
  return spread_of(values);
}

std::string text_of_spread(const Spread& spread, Unit unit) {
  if (spread.count < 2) return number_text(spread.mean, unit);
  return fmt::format(
      "{} \xC2\xB1 {}", number_text(spread.mean, unit),
      unit == Unit::percent ? fmt::format("{:.2f}", spread.deviation) : number_text(spread.deviation, unit));
}

std::vector<Figure> figures_of(const std::vector<RunGroup>& groups) {
  std::vector<Figure> present;
  for (const Figure& figure : kFigures) {
    const bool is_there =
        std::ranges::any_of(groups, [&](const RunGroup& group) { return last_of(group, figure.field).count > 0; });
    if (is_there) present.push_back(figure);
  }
  return present;
}

void add_results(HtmlWriter& html, const std::vector<RunGroup>& groups, const std::vector<Figure>& figures) {
  html.element("h2", "Results");
  html.open("div", {{"class", "card scroll"}});
  html.open("table");
  html.open("tr");
  html.element("th", "run");
  html.element("th", "seeds", {{"class", "n"}});
  for (const Figure& figure : figures) html.element("th", figure.title, {{"class", "n"}});
  html.element("th", "epochs", {{"class", "n"}});
  html.element("th", "images/s", {{"class", "n"}});
  html.close();
  for (std::size_t i = 0; i < groups.size(); ++i) {
    html.open("tr");
    html.open("td");
    html.element("span", "", {{"class", "key"}, {"style", "background: var(--" + plot::series_colour(i).name + ")"}});
    html.text(groups[i].name);
    html.close();
    html.element("td", std::to_string(groups[i].runs.size()), {{"class", "n"}});
    for (const Figure& figure : figures)
      html.element("td", text_of_spread(last_of(groups[i], figure.field), figure.unit), {{"class", "n"}});
    std::int64_t epochs = 0;
    for (const RunData* const run : groups[i].runs)
      epochs = std::max(epochs, run->epochs.empty() ? 0 : run->epochs.back().epoch);
    html.element("td", std::to_string(epochs), {{"class", "n"}});
    html.element("td", number_text(last_of(groups[i], &Epoch::images_per_second).mean), {{"class", "n"}});
    html.close();
  }
  html.close();
  html.close();
  html.element("p", "Of each run's last epoch; of several seeds, the mean and one standard deviation.",
               {{"class", "note"}});
}

void add_settings(HtmlWriter& html, const std::vector<RunGroup>& groups) {
  const std::vector<std::string> names = differing_settings(groups);
  if (names.empty()) return;
  html.element("h2", "Settings that differ");
  html.open("div", {{"class", "card scroll"}});
  html.open("table");
  html.open("tr");
  html.element("th", "run");
  for (const std::string& name : names) html.element("th", name);
  html.close();
  for (const RunGroup& group : groups) {
    const TextTable settings = settings_of(*group.runs.front());
    html.open("tr");
    html.element("td", group.name);
    for (const std::string& name : names) html.element("td", value_in(settings, name));
    html.close();
  }
  html.close();
  html.close();
}

}  // namespace

Spread spread_of(const std::vector<double>& values) {
  Spread spread;
  double sum = 0.0, squares = 0.0;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    sum += value;
    ++spread.count;
  }
  if (spread.count == 0) return spread;
  spread.mean = sum / static_cast<double>(spread.count);
  for (const double value : values)
    if (std::isfinite(value)) squares += (value - spread.mean) * (value - spread.mean);
  if (spread.count > 1) spread.deviation = std::sqrt(squares / static_cast<double>(spread.count - 1));
  return spread;
}

std::vector<std::string> differing_settings(const std::vector<RunGroup>& groups) {
  std::vector<std::string> names, differing;
  std::vector<TextTable> all;
  for (const RunGroup& group : groups) {
    all.push_back(settings_of(*group.runs.front()));
    for (const auto& [name, value] : all.back()) {
      if (std::ranges::find(names, name) == names.end()) names.push_back(name);
    }
  }
  for (const std::string& name : names) {
    const bool same = std::ranges::all_of(
        all, [&](const TextTable& settings) { return value_in(settings, name) == value_in(all.front(), name); });
    if (!same) differing.push_back(name);
  }
  return differing;
}

std::vector<RunGroup> group_runs(const std::vector<RunData>& runs) {
  std::vector<RunGroup> groups;
  std::vector<TextTable> settings;
  for (const RunData& run : runs) {
    const TextTable own = settings_of(run);
    const auto found = std::ranges::find(settings, own);
    if (found == settings.end()) {
      settings.push_back(own);
      groups.push_back({run.name, {&run}});
    } else {
      groups[static_cast<std::size_t>(found - settings.begin())].runs.push_back(&run);
    }
  }
  // A few settings say more than the name of a folder.
  constexpr std::size_t kMostInName = 2;
  const std::vector<std::string> names = differing_settings(groups);
  if (names.empty() || names.size() > kMostInName) return groups;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    std::vector<std::string> parts;
    for (const std::string& name : names) parts.push_back(fmt::format("{} {}", name, value_in(settings[i], name)));
    groups[i].name = fmt::format("{}", fmt::join(parts, ", "));
  }
  return groups;
}

std::string comparison_page(const std::vector<RunData>& runs) {
  const std::vector<RunGroup> groups = group_runs(runs);
  const std::vector<Figure> figures = figures_of(groups);
  const std::string title = fmt::format("{} runs compared", runs.size());
  HtmlWriter html;
  begin_page(html, title);
  html.open("header");
  html.element("h1", title);
  if (groups.size() < runs.size()) {
    html.element("div",
                 fmt::format("in {} group{} of the same settings but for the seed", groups.size(),
                             groups.size() == 1 ? "" : "s"),
                 {{"class", "sub"}});
  }
  html.close();
  std::vector<std::string> problems;
  for (const RunData& run : runs) problems.insert(problems.end(), run.problems.begin(), run.problems.end());
  add_problems(html, problems);
  if (!figures.empty()) add_results(html, groups, figures);
  add_settings(html, groups);
  if (!figures.empty()) {
    html.element("h2", "Curves");
    html.open("div", {{"class", "grid"}});
    for (const Figure& figure : figures) {
      plot::LineChart chart;
      chart.title = figure.title;
      chart.x = {.title = "epoch", .whole = true};
      chart.y.unit = figure.unit;
      for (std::size_t i = 0; i < groups.size(); ++i) chart.series.push_back(pooled(groups[i], i, figure.field));
      add_chart(html, chart);
    }
    html.close();
  }
  html.element("h2", "Runs");
  begin_card(html);
  TextTable folders;
  for (const RunGroup& group : groups) {
    for (const RunData* const run : group.runs)
      folders.emplace_back(group.name, run->folder + (run->state == RunState::finished ? "" : " (not finished)"));
  }
  add_pairs(html, folders);
  html.close();
  return end_page(html);
}

}  // namespace tandem::train::report
