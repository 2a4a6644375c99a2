// Groups, their settings, curves and results.
#include "tandem/train/report/comparison.h"

#include "tandem/train/plot/palette.h"
#include "tandem/train/plot/ticks.h"
#include "tandem/train/progress_format.h"
#include "tandem/train/report/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace tandem::train::report {
namespace {

using plot::number_text;
using plot::Unit;

/// Names of settings that may differ in a group: the seed, and what the programs that made the runs call without
/// effect.
std::set<std::string> passed_over(const std::vector<const RunData*>& runs) {
  std::set<std::string> names{"seed"};
  for (const RunData* const run : runs) names.insert(run->without_effect.begin(), run->without_effect.end());
  return names;
}

TextTable settings_of(const RunData& run, const std::set<std::string>& left_out) {
  TextTable settings{{"model", run.model}, {"dataset", run.dataset}};
  for (const auto& entry : run.config) {
    if (!left_out.contains(entry.first) && entry.first != "model" && entry.first != "dataset")
      settings.push_back(entry);
  }
  if (std::isfinite(run.ranks)) settings.emplace_back("ranks", number_text(run.ranks));
  return settings;
}

std::vector<const RunData*> all_runs(const std::vector<RunGroup>& groups) {
  std::vector<const RunData*> runs;
  for (const RunGroup& group : groups) runs.insert(runs.end(), group.runs.begin(), group.runs.end());
  return runs;
}

/// Of each group, which has the same in all of its runs.
std::vector<TextTable> settings_of(const std::vector<RunGroup>& groups) {
  const std::set<std::string> left_out = passed_over(all_runs(groups));
  std::vector<TextTable> all;
  for (const RunGroup& group : groups) all.push_back(settings_of(*group.runs.front(), left_out));
  return all;
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

/// What the page and the terminal show of each group.
struct ResultTable {
  std::vector<std::string> names;  ///< of columns; the first one has the groups' names, the others numbers
  std::vector<std::vector<std::string>> rows;
};

ResultTable results_of(const std::vector<RunGroup>& groups, const std::vector<Figure>& figures) {
  ResultTable table{{"", "Runs"}, {}};
  for (const Figure& figure : figures) table.names.emplace_back(figure.title);
  table.names.insert(table.names.end(), {"Epochs", "Images/s"});
  for (const RunGroup& group : groups) {
    std::vector<std::string>& row = table.rows.emplace_back();
    row = {group.name, std::to_string(group.runs.size())};
    for (const Figure& figure : figures) row.push_back(text_of_spread(last_of(group, figure.field), figure.unit));
    std::int64_t epochs = 0;
    for (const RunData* const run : group.runs)
      epochs = std::max(epochs, run->epochs.empty() ? 0 : run->epochs.back().epoch);
    row.push_back(std::to_string(epochs));
    row.push_back(number_text(last_of(group, &Epoch::images_per_second).mean));
  }
  return table;
}

void add_results(HtmlWriter& html, const ResultTable& table) {
  html.element("h2", "Results");
  html.open("div", {{"class", "card scroll"}});
  html.open("table");
  html.open("tr");
  html.element("th", "settings");
  for (std::size_t i = 1; i < table.names.size(); ++i) html.element("th", table.names[i], {{"class", "n"}});
  html.close();
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const std::vector<std::string>& row = table.rows[i];
    html.open("tr");
    html.open("td");
    html.element("span", "", {{"class", "key"}, {"style", "background: var(--" + plot::series_colour(i).name + ")"}});
    html.text(row.front());
    html.close();
    for (std::size_t column = 1; column < row.size(); ++column) html.element("td", row[column], {{"class", "n"}});
    html.close();
  }
  html.close();
  html.close();
  html.element("p", "Of each run's last epoch; of several runs, the mean and one standard deviation.",
               {{"class", "note"}});
}

void add_settings(HtmlWriter& html, const std::vector<RunGroup>& groups) {
  const std::vector<std::string> names = differing_settings(groups);
  if (names.empty()) return;
  const std::set<std::string> left_out = passed_over(all_runs(groups));
  html.element("h2", "Settings that differ");
  html.open("div", {{"class", "card scroll"}});
  html.open("table");
  html.open("tr");
  html.element("th", "run");
  for (const std::string& name : names) html.element("th", name);
  html.close();
  for (const RunGroup& group : groups) {
    const TextTable settings = settings_of(*group.runs.front(), left_out);
    html.open("tr");
    html.element("td", group.name);
    for (const std::string& name : names) html.element("td", value_in(settings, name));
    html.close();
  }
  html.close();
  html.close();
}

bool has_seed_of(const RunData& run, const RunData* other) {
  const std::string seed = setting(run, "seed");
  return !seed.empty() && seed == setting(*other, "seed");
}

/// "b has the seed of a, and the same settings: it does not count": a line for each such run.
std::vector<std::string> repetition_texts(const std::vector<RunGroup>& groups) {
  std::vector<std::string> texts;
  for (const RunGroup& group : groups) {
    for (const RunData* const run : group.repeated) {
      const RunData* const first =
          *std::ranges::find_if(group.runs, [&](const RunData* r) { return has_seed_of(*run, r); });
      texts.push_back(
          fmt::format("{} has the settings and the seed ({}) of {}: it does not count among runs of several seeds.",
                      run->folder, setting(*run, "seed"), first->folder));
    }
  }
  return texts;
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
  const std::vector<TextTable> all = settings_of(groups);
  for (const TextTable& settings : all) {
    for (const auto& [name, value] : settings) {
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
  std::vector<const RunData*> all;
  for (const RunData& run : runs) all.push_back(&run);
  const std::set<std::string> left_out = passed_over(all);
  for (const RunData& run : runs) {
    const TextTable own = settings_of(run, left_out);
    const auto found = std::ranges::find(settings, own);
    if (found == settings.end()) {
      settings.push_back(own);
      groups.push_back({run.name, {&run}, {}});
    } else {
      RunGroup& group = groups[static_cast<std::size_t>(found - settings.begin())];
      const bool is_repeated =
          std::ranges::any_of(group.runs, [&](const RunData* other) { return has_seed_of(run, other); });
      (is_repeated ? group.repeated : group.runs).push_back(&run);
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

std::string comparison_text(const std::vector<RunData>& runs) {
  constexpr std::size_t kMostFigures = 3, kWidestName = 40;
  const std::vector<RunGroup> groups = group_runs(runs);
  std::vector<Figure> figures = figures_of(groups);
  figures.resize(std::min(figures.size(), kMostFigures));
  const ResultTable table = results_of(groups, figures);
  std::vector<int> widths;
  for (const std::string& name : table.names) widths.push_back(display_width(name));
  for (const std::vector<std::string>& row : table.rows) {
    for (std::size_t i = 0; i < row.size(); ++i)
      widths[i] =
          std::max(widths[i], i == 0 ? static_cast<int>(std::min(row[i].size(), kWidestName)) : display_width(row[i]));
  }
  std::string text;
  const auto add_line = [&](const std::vector<std::string>& cells) {
    text += fmt::format("{:<{}.{}}", cells.front(), widths.front(), kWidestName);
    for (std::size_t i = 1; i < cells.size(); ++i)
      text += std::string(static_cast<std::size_t>(2 + widths[i] - display_width(cells[i])), ' ') + cells[i];
    text += '\n';
  };
  add_line(table.names);
  for (const std::vector<std::string>& row : table.rows) add_line(row);
  for (const std::string& repetition : repetition_texts(groups)) text += repetition + '\n';
  return text;
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
  if (!figures.empty()) add_results(html, results_of(groups, figures));
  for (const std::string& repetition : repetition_texts(groups)) html.element("p", repetition, {{"class", "note"}});
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
    std::vector<const RunData*> all = group.runs;
    all.insert(all.end(), group.repeated.begin(), group.repeated.end());
    for (const RunData* const run : all)
      folders.emplace_back(group.name, run->folder + (run->state == RunState::finished ? "" : " (not finished)"));
  }
  add_pairs(html, folders);
  html.close();
  return end_page(html);
}

}  // namespace tandem::train::report
