// Groups, their settings, curves and results.
#include "tandem/train/report/comparison.h"

#include "tandem/train/plot/palette.h"
#include "tandem/train/plot/ticks.h"
#include "tandem/train/report/page.h"
#include "tandem/train/report/result_table.h"
#include "tandem/train/report/short_names.h"
#include "tandem/train/wrapped_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <string_view>

namespace tandem::train::report {
namespace {

using plot::number_text;

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

/// Those that count, and those that do not.
std::vector<const RunData*> runs_of(const RunGroup& group) {
  std::vector<const RunData*> runs = group.runs;
  runs.insert(runs.end(), group.repeated.begin(), group.repeated.end());
  return runs;
}

/// "a, b, c and 4 more"
std::string listed(const std::vector<std::string>& names) {
  constexpr std::size_t kMost = 4;
  const std::size_t shown = std::min(names.size(), kMost);
  const std::string text = fmt::format("{}", fmt::join(names.begin(), names.begin() + static_cast<int>(shown), ", "));
  return names.size() > shown ? fmt::format("{} and {} more", text, names.size() - shown) : text;
}

void add_results(HtmlWriter& html, const ResultTable& table) {
  html.element("h2", "Results");
  html.open("div", {{"class", "card scroll"}});
  html.open("table", {{"class", "stack"}});
  html.open("tr");
  html.element("th", "settings");
  for (std::size_t i = 1; i < table.names.size(); ++i) html.element("th", table.names[i], {{"class", "n"}});
  html.close();
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const std::vector<std::string>& row = table.rows[i];
    html.open("tr");
    html.open("td", {{"class", "name"}});
    html.open("div", {{"class", "named"}});
    html.element("span", "",
                 {{"class", plot::is_series_dashed(i) ? "key dashed" : "key"},
                  {"style", "--key: var(--" + plot::series_colour(i).name + ")"}});
    html.element("span", row.front());
    html.close();
    html.close();
    for (std::size_t column = 1; column < row.size(); ++column)
      html.element("td", row[column], {{"class", "n"}, {"data-name", table.names[column]}});
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
  html.open("table", {{"class", "stack"}});
  html.open("tr");
  html.element("th", "run");
  for (const std::string& name : names) html.element("th", name);
  html.close();
  for (const RunGroup& group : groups) {
    const TextTable settings = settings_of(*group.runs.front(), left_out);
    html.open("tr");
    html.element("td", group.name, {{"class", "name"}});
    for (const std::string& name : names) html.element("td", value_in(settings, name), {{"data-name", name}});
    html.close();
  }
  html.close();
  html.close();
}

bool has_seed_of(const RunData& run, const RunData* other) {
  const std::string seed = setting(run, "seed");
  return !seed.empty() && seed == setting(*other, "seed");
}

/// Sets of images, and the names of the groups that were held against them.
using Evaluations = std::vector<std::pair<std::string, std::vector<std::string>>>;

void add_evaluation(Evaluations& evaluations, const std::string& images, const std::string& name) {
  auto found = std::ranges::find(evaluations, images, [](const auto& entry) { return entry.first; });
  if (found == evaluations.end()) found = evaluations.insert(found, {images, {}});
  if (std::ranges::find(found->second, name) == found->second.end()) found->second.push_back(name);
}

/// "These runs were not tested on the same images, so that ...: a on 50 images of cifar10; the others on ...", or "".
std::string evaluated_on_text(Evaluations evaluations, std::string_view done, std::string_view figures) {
  if (evaluations.size() < 2) return "";
  std::ranges::stable_sort(evaluations, {}, [](const auto& entry) { return entry.second.size(); });
  std::vector<std::string> parts;
  for (const auto& [images, names] : evaluations) {
    const bool are_most = images == evaluations.back().first && names.size() > 1;
    parts.push_back(fmt::format("{} on {}", are_most ? "the others" : listed(names), images));
  }
  return fmt::format("These runs were not {} on the same images, so that their {} figures cannot be compared: {}.",
                     done, figures, fmt::join(parts, "; "));
}

/// How many images each run was tested on, and of which data set, where that is not the same of all.
std::string tested_on_text(const std::vector<RunGroup>& groups) {
  Evaluations tests;
  for (const RunGroup& group : groups) {
    for (const RunData* const run : runs_of(group)) {
      if (std::isfinite(run->test_images))
        add_evaluation(tests, fmt::format("{:.0f} images of {}", run->test_images, run->dataset), group.name);
    }
  }
  return evaluated_on_text(std::move(tests), "tested", "test");
}

/// The same of the images that were held out of training, which the seed draws. Groups of the same seeds are held
/// against the same.
std::string validated_on_text(const std::vector<RunGroup>& groups) {
  Evaluations validations;
  for (const RunGroup& group : groups) {
    std::set<std::string> of_group;
    for (const RunData* const run : runs_of(group)) {
      if (!(run->validation_images > 0.0)) continue;
      of_group.insert(fmt::format("{:.0f} of {:.0f} images of {} by seed {}", run->validation_images,
                                  run->validation_images + run->train_images, run->dataset, setting(*run, "seed")));
    }
    if (!of_group.empty()) add_evaluation(validations, fmt::format("{}", fmt::join(of_group, " and ")), group.name);
  }
  return evaluated_on_text(std::move(validations), "validated", "validation");
}

/// What keeps figures from being compared.
std::vector<std::string> cautions(const std::vector<RunGroup>& groups) {
  std::vector<std::string> texts{tested_on_text(groups), validated_on_text(groups)};
  std::erase(texts, "");
  return texts;
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

/// The last parts of a path, as many as asked for.
std::string end_of_path(const std::string& folder, std::size_t parts) {
  namespace fs = std::filesystem;
  std::error_code unknown;
  fs::path path = fs::absolute(folder, unknown).lexically_normal(), end;
  if (!path.has_filename()) path = path.parent_path();
  for (std::size_t i = 0; i < parts && path.has_relative_path(); ++i, path = path.parent_path())
    end = end.empty() ? path.filename() : path.filename() / end;
  return end.string();
}

/// Runs of the same name are told apart by the folders around theirs.
void tell_apart(std::vector<RunGroup>& groups) {
  constexpr std::size_t kDeepest = 16;
  for (std::size_t parts = 2; parts <= kDeepest; ++parts) {
    std::map<std::string, int> times;
    for (const RunGroup& group : groups) ++times[group.name];
    for (RunGroup& group : groups) {
      if (times[group.name] > 1) group.name = end_of_path(group.runs.front()->folder, parts);
    }
  }
}

/// As labels of lines.
std::vector<std::string> labels_of(const std::vector<RunGroup>& groups) {
  std::vector<std::string> names;
  for (const RunGroup& group : groups) names.push_back(group.name);
  return short_names(names,
                     [&](const std::string& name) { return plot::fits_beside_lines(name, names.size(), kChartWidth); });
}

}  // namespace

plot::Series pooled(const RunGroup& group, std::size_t index, double Epoch::* figure) {
  std::map<std::int64_t, std::vector<double>> by_epoch;
  for (const RunData* const run : group.runs) {
    for (const Epoch& epoch : run->epochs) by_epoch[epoch.epoch].push_back(epoch.*figure);
  }
  plot::Series series;
  series.colour = plot::series_colour(index);
  series.dashed = plot::is_series_dashed(index);
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
  if (names.empty() || names.size() > kMostInName) {
    tell_apart(groups);
    return groups;
  }
  for (std::size_t i = 0; i < groups.size(); ++i) {
    std::vector<std::string> parts;
    for (const std::string& name : names) parts.push_back(fmt::format("{} {}", name, value_in(settings[i], name)));
    groups[i].name = fmt::format("{}", fmt::join(parts, ", "));
  }
  return groups;
}

std::string comparison_text(const std::vector<RunData>& runs, int columns) {
  constexpr std::size_t kMostFigures = 3;
  const std::vector<RunGroup> groups = group_runs(runs);
  std::vector<Figure> figures = figures_of(groups);
  figures.resize(std::min(figures.size(), kMostFigures));
  std::string text = table_text(results_of(groups, figures), columns);
  for (const std::string& caution : cautions(groups)) text += wrapped("note: " + caution + '\n', columns);
  for (const std::string& repetition : repetition_texts(groups)) text += wrapped(repetition + '\n', columns);
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
  const std::vector<std::string> texts = cautions(groups);
  if (!texts.empty()) html.open("div", {{"class", "banner"}});
  for (const std::string& text : texts) html.element("p", text);
  if (!texts.empty()) html.close();
  if (!figures.empty()) add_results(html, results_of(groups, figures));
  for (const std::string& repetition : repetition_texts(groups)) html.element("p", repetition, {{"class", "note"}});
  add_settings(html, groups);
  if (!figures.empty()) {
    html.element("h2", "Curves");
    html.open("div", {{"class", "grid"}});
    const std::vector<std::string> labels = labels_of(groups);
    for (const Figure& figure : figures) {
      plot::LineChart chart;
      chart.title = figure.title;
      chart.x = {.title = "epoch", .whole = true};
      chart.y.unit = figure.unit;
      for (std::size_t i = 0; i < groups.size(); ++i) {
        chart.series.push_back(pooled(groups[i], i, figure.field));
        chart.series.back().name = labels[i];
      }
      add_chart(html, chart);
    }
    html.close();
  }
  html.element("h2", "Runs");
  begin_card(html);
  TextTable folders;
  for (const RunGroup& group : groups) {
    for (const RunData* const run : runs_of(group))
      folders.emplace_back(group.name, run->folder + (run->state == RunState::finished ? "" : " (not finished)"));
  }
  add_pairs(html, folders);
  html.close();
  return end_page(html);
}

}  // namespace tandem::train::report
