// Figures of groups, and a table of them that fits where it is shown.
#include "tandem/train/report/result_table.h"

#include "tandem/train/progress_format.h"
#include "tandem/train/report/short_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

namespace tandem::train::report {
namespace {

using plot::number_text;
using plot::Unit;

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

constexpr const char* kSpeedUp = "Speed-up";

double ranks_of(const RunGroup& group) { return group.runs.front()->ranks; }

/// Whether two groups differ in nothing but the ranks and how these work together.
bool differ_in_ranks_alone(const RunGroup& a, const RunGroup& b) {
  constexpr std::string_view kOfRanks[] = {"ranks",         "replicas",        "backend",         "comm-algorithm",
                                           "comm-progress", "bucket-mb",       "allreduce-dtype", "tune-comm",
                                           "comm-costs",    "simulate-network"};
  return std::ranges::all_of(differing_settings({a, b}), [&](const std::string& name) {
    return std::ranges::find(kOfRanks, name) != std::end(kOfRanks);
  });
}

/// Images per second beside those of the first group on one rank that is else the same; kMissing where there is none.
double speed_up_of(const RunGroup& group, const std::vector<RunGroup>& groups) {
  const auto one = std::ranges::find_if(
      groups, [&](const RunGroup& other) { return ranks_of(other) == 1.0 && differ_in_ranks_alone(group, other); });
  if (one == groups.end()) return kMissing;
  return last_of(group, &Epoch::images_per_second).mean / last_of(*one, &Epoch::images_per_second).mean;
}

/// Heads in one line or two, and the width of each column, the first one's being that of its longest name.
struct Layout {
  std::vector<std::vector<std::string>> heads;  ///< lines
  std::vector<int> widths;
};

Layout layout_of(const ResultTable& table, bool breaks_heads) {
  Layout layout;
  layout.heads.emplace_back();
  if (breaks_heads) layout.heads.emplace_back();
  for (std::size_t i = 0; i < table.names.size(); ++i) {
    const std::string& name = table.names[i];
    const std::size_t blank = breaks_heads ? name.find(' ') : std::string::npos;
    layout.heads.back().push_back(blank == std::string::npos ? name : name.substr(blank + 1));
    if (breaks_heads) layout.heads.front().push_back(blank == std::string::npos ? "" : name.substr(0, blank));
    int width = 0;
    for (const std::vector<std::string>& head : layout.heads) width = std::max(width, display_width(head.back()));
    for (const std::vector<std::string>& row : table.rows) width = std::max(width, display_width(row[i]));
    layout.widths.push_back(width);
  }
  return layout;
}

/// Of all columns but the first, with the gaps before them.
int width_of_numbers(const Layout& layout) {
  int width = 0;
  for (std::size_t i = 1; i < layout.widths.size(); ++i) width += 2 + layout.widths[i];
  return width;
}

void remove_column(ResultTable& table, std::size_t column) {
  const auto place = static_cast<std::ptrdiff_t>(column);
  table.names.erase(table.names.begin() + place);
  for (std::vector<std::string>& row : table.rows) row.erase(row.begin() + place);
}

/// A column that says less than the others: how many runs a group has, where that is always 1, then the last of several
/// figures. 0: none.
std::size_t least_column(const ResultTable& table) {
  constexpr std::size_t kRuns = 1, kBeforeFigures = 2, kBehindFigures = 2;  // names, runs; epochs, images per second
  const bool has_runs = table.names[kRuns] == "Runs";
  const bool all_are_one = std::ranges::all_of(table.rows, [](const auto& row) { return row[kRuns] == "1"; });
  if (has_runs && all_are_one) return kRuns;
  const std::size_t first = kBeforeFigures - (has_runs ? 0 : 1),
                    end = table.names.size() - kBehindFigures - (table.names.back() == kSpeedUp ? 1 : 0);
  return end > first + 1 ? end - 1 : 0;
}

void add_line(std::string& text, const std::vector<std::string>& cells, const std::vector<int>& widths) {
  text += cells.front();
  for (std::size_t i = 1; i < cells.size(); ++i) {
    const int before = i == 1 ? widths.front() - display_width(cells.front()) : 0;
    text += std::string(static_cast<std::size_t>(2 + before + widths[i] - display_width(cells[i])), ' ') + cells[i];
  }
  text.erase(text.find_last_not_of(' ') + 1);
  text += '\n';
}

/// Makes a table fit that is too wide, as far as that can be done.
Layout fit(ResultTable& table, int columns) {
  constexpr int kReadableName = 20;
  const int wanted = std::min(layout_of(table, false).widths.front(), kReadableName);
  Layout layout = layout_of(table, true);
  while (columns - width_of_numbers(layout) < wanted) {
    const std::size_t least = least_column(table);
    if (least == 0) break;
    remove_column(table, least);
    layout = layout_of(table, true);
  }
  const int free = std::max(columns - width_of_numbers(layout), 8);
  std::vector<std::string> names;
  for (const std::vector<std::string>& row : table.rows) names.push_back(row.front());
  names = short_names(names, [free](const std::string& name) { return display_width(name) <= free; });
  for (std::size_t i = 0; i < names.size(); ++i) table.rows[i].front() = names[i];
  return layout_of(table, true);
}

}  // namespace

Spread spread_of(const std::vector<double>& values) {
  Spread spread;
  double sum = 0.0, squares = 0.0;
  bool are_same = true;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    if (spread.count == 0) spread.mean = value;
    are_same = are_same && value == spread.mean;
    sum += value;
    ++spread.count;
  }
  if (are_same) return spread;  // without what the sum is rounded by
  spread.mean = sum / static_cast<double>(spread.count);
  for (const double value : values)
    if (std::isfinite(value)) squares += (value - spread.mean) * (value - spread.mean);
  if (spread.count > 1) spread.deviation = std::sqrt(squares / static_cast<double>(spread.count - 1));
  return spread;
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

ResultTable results_of(const std::vector<RunGroup>& groups, const std::vector<Figure>& figures) {
  ResultTable table{{"", "Runs"}, {}};
  for (const Figure& figure : figures) table.names.emplace_back(figure.title);
  table.names.insert(table.names.end(), {"Epochs", "Images/s"});
  std::vector<double> speed_ups;
  for (const RunGroup& group : groups) speed_ups.push_back(speed_up_of(group, groups));
  bool has_speed_up = false;
  for (std::size_t i = 0; i < groups.size(); ++i)
    has_speed_up = has_speed_up || (ranks_of(groups[i]) > 1.0 && std::isfinite(speed_ups[i]));
  if (has_speed_up) table.names.emplace_back(kSpeedUp);
  for (const RunGroup& group : groups) {
    std::vector<std::string>& row = table.rows.emplace_back();
    row = {group.name, std::to_string(group.runs.size())};
    for (const Figure& figure : figures) row.push_back(text_of_spread(last_of(group, figure.field), figure.unit));
    std::int64_t epochs = 0;
    for (const RunData* const run : group.runs)
      epochs = std::max(epochs, run->epochs.empty() ? 0 : run->epochs.back().epoch);
    row.push_back(std::to_string(epochs));
    row.push_back(number_text(last_of(group, &Epoch::images_per_second).mean));
    if (!has_speed_up) continue;
    const double speed_up = speed_ups[static_cast<std::size_t>(&group - groups.data())];
    row.push_back(std::isfinite(speed_up) ? fmt::format("{:.2f} x", speed_up) : "-");
  }
  return table;
}

std::string table_text(const ResultTable& table, int columns) {
  ResultTable shown = table;
  Layout layout = layout_of(shown, false);
  if (columns > 0 && layout.widths.front() + width_of_numbers(layout) > columns) layout = fit(shown, columns);
  std::string text;
  for (const std::vector<std::string>& head : layout.heads) add_line(text, head, layout.widths);
  for (const std::vector<std::string>& row : shown.rows) add_line(text, row, layout.widths);
  return text;
}

}  // namespace tandem::train::report
