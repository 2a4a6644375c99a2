// One table, four ways to write it.
#include "apps/study/tables.h"

#include "apps/study/reading.h"
#include "tandem/core/error.h"
#include "tandem/layers/file.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string_view>

namespace tandem::study {
namespace {

using Json = nlohmann::ordered_json;
using train::report::Epoch;
using train::report::kEpochFields;

void add_column(Table& table, const std::string& name, bool is_number) {
  table.names.push_back(name);
  table.are_numbers.push_back(is_number);
}

std::string plain_number(double value) { return std::isfinite(value) ? fmt::format("{}", value) : ""; }

std::string_view name_of(RunOutcome outcome) {
  switch (outcome) {
    case RunOutcome::missing:
      return "missing";
    case RunOutcome::interrupted:
      return "interrupted";
    case RunOutcome::failed:
      return "failed";
    case RunOutcome::diverged:
      return "diverged";
    case RunOutcome::finished:
      break;
  }
  return "finished";
}

/// Each of `characters` that has another form in `replacements`.
std::string replaced(std::string_view text, std::string_view characters, const std::vector<std::string>& replacements) {
  std::string result;
  for (const char c : text) {
    const std::size_t found = characters.find(c);
    result += found == characters.npos ? std::string(1, c) : replacements[found];
  }
  return result;
}

std::string latex_text(std::string_view text) {
  std::string result = replaced(text, "\\{}$&#%_~^",
                                {"\\textbackslash{}", "\\{", "\\}", "\\$", "\\&", "\\#", "\\%", "\\_",
                                 "\\textasciitilde{}", "\\textasciicircum{}"});
  for (const auto& [from, to] : {std::pair{"\xC2\xB1", "$\\pm$"}, std::pair{"\xE2\x80\x93", "--"}}) {
    for (std::size_t at = 0; (at = result.find(from, at)) != result.npos;)
      result.replace(at, std::string_view(from).size(), to);
  }
  return result;
}

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == text.npos) return text;
  return '"' + replaced(text, "\"", {"\"\""}) + '"';
}

std::string_view words_of(Certainty certainty) {
  switch (certainty) {
    case Certainty::higher:
      return "clearly higher";
    case Certainty::lower:
      return "clearly lower";
    case Certainty::noise:
      return "within the noise";
    case Certainty::same:
      return "the same";
    case Certainty::unknown:
      return "one seed cannot tell";
    case Certainty::missing:
      break;
  }
  return "no figure";
}

void add_coordinates(std::vector<std::string>& row, const Results& results, std::size_t point,
                     const std::vector<std::string>& dimensions) {
  for (const std::string& name : dimensions) row.push_back(value_of(results.plan.points[point].coordinates, name));
}

Json number_or_null(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

}  // namespace

Table table_of(const Results& results) {
  Table table;
  const std::vector<std::string> dimensions = dimensions_of(results.plan);
  for (const std::string& name : dimensions) add_column(table, name, false);
  add_column(table, "seeds", true);
  for (const Measure* const measure : results.measures) add_column(table, std::string(measure->title), true);
  for (const std::size_t i : results.shown) {
    const PointResult& point = results.points[i];
    std::vector<std::string> row;
    add_coordinates(row, results, i, dimensions);
    const auto finished = std::ranges::count_if(
        point.seeds, [](const SeedResult& seed) { return seed.run.outcome == RunOutcome::finished; });
    row.push_back(std::to_string(finished));
    for (std::size_t k = 0; k < results.measures.size(); ++k)
      row.push_back(sample_text(point.samples[k], results.measures[k]->unit));
    table.rows.push_back(std::move(row));
  }
  return table;
}

std::string note_of_best(const Study& study) {
  if (study.best_of.empty()) return "";
  const std::string text = fmt::format("Of each, the {} with the best {} of all its seeds is shown", study.best_of,
                                       find_measure(study.best_by).title);
  constexpr std::string_view kOfTestImages[] = {"test_accuracy", "test_loss", "gap"};
  if (std::ranges::find(kOfTestImages, study.best_by) == std::end(kOfTestImages)) return text + ".";
  return text + ": chosen by the test images, so that its figures on them flatter.";
}

Table differences_of(const Results& results) {
  Table table;
  for (const char* const name : {"measure", "point", "against"}) add_column(table, name, false);
  for (const char* const name : {"difference", "95 % interval"}) add_column(table, name, true);
  add_column(table, "so", false);
  for (std::size_t k = 0; k < results.measures.size(); ++k) {
    const Measure& measure = *results.measures[k];
    for (const std::size_t i : results.shown) {
      const PointResult& point = results.points[i];
      if (point.baseline == i || measure.better == Better::neither) continue;
      const Difference difference = difference_of(point.samples[k], results.points[point.baseline].samples[k]);
      const bool has_interval = std::isfinite(difference.low);
      table.rows.push_back({std::string(measure.title), results.plan.points[i].label,
                            results.plan.points[point.baseline].label, difference_text(difference.mean, measure.unit),
                            has_interval ? fmt::format("{} to {}", difference_text(difference.low, measure.unit),
                                                       difference_text(difference.high, measure.unit))
                                         : train::plot::number_text(difference.low),
                            std::string(words_of(difference.certainty))});
    }
  }
  return table;
}

std::string markdown(const Table& table) {
  const auto line = [](const std::vector<std::string>& cells) {
    std::string text = "|";
    for (const std::string& cell : cells) text += fmt::format(" {} |", replaced(cell, "|\n", {"\\|", " "}));
    return text + "\n";
  };
  std::string text = line(table.names) + "|";
  for (const bool is_number : table.are_numbers) text += is_number ? "---:|" : "---|";
  text += '\n';
  for (const auto& row : table.rows) text += line(row);
  return text;
}

std::string latex(const Table& table) {
  const auto line = [](const std::vector<std::string>& cells) {
    std::string text;
    for (const std::string& cell : cells) text += (text.empty() ? "  " : " & ") + latex_text(cell);
    return text + " \\\\\n";
  };
  std::string columns;
  for (const bool is_number : table.are_numbers) columns += is_number ? 'r' : 'l';
  std::string text = "\\begin{tabular}{" + columns + "}\n  \\toprule\n" + line(table.names) + "  \\midrule\n";
  for (const auto& row : table.rows) text += line(row);
  return text + "  \\bottomrule\n\\end{tabular}\n";
}

std::string csv(const Table& table) {
  const auto line = [](const std::vector<std::string>& cells) {
    std::string text;
    for (std::size_t i = 0; i < cells.size(); ++i) text += (i == 0 ? "" : ",") + csv_field(cells[i]);
    return text + "\n";
  };
  std::string text = line(table.names);
  for (const auto& row : table.rows) text += line(row);
  return text;
}

Table runs_table(const Results& results) {
  Table table;
  const std::vector<std::string> dimensions = dimensions_of(results.plan);
  add_column(table, "study", false);
  for (const std::string& name : dimensions) add_column(table, name, false);
  for (const char* const name : {"seed", "outcome", "folder", "reason"}) add_column(table, name, false);
  for (const Measure* const measure : results.measures) add_column(table, std::string(measure->name), true);
  for (const PointResult& point : results.points) {
    for (const SeedResult& seed : point.seeds) {
      std::vector<std::string> row{results.plan.study.name};
      add_coordinates(row, results, point.point, dimensions);
      row.insert(row.end(),
                 {std::to_string(seed.seed), std::string(name_of(seed.run.outcome)), seed.run.folder, seed.run.reason});
      for (const double value : seed.values) row.push_back(plain_number(value));
      table.rows.push_back(std::move(row));
    }
  }
  return table;
}

Table epochs_table(const Results& results) {
  Table table;
  const std::vector<std::string> dimensions = dimensions_of(results.plan);
  for (const std::string& name : dimensions) add_column(table, name, false);
  for (const char* const name : {"seed", "epoch"}) add_column(table, name, true);
  for (const auto& column : kEpochFields) add_column(table, column.first, true);
  for (const PointResult& point : results.points) {
    for (const SeedResult& seed : point.seeds) {
      if (!seed.run.data || !is_done(seed.run.outcome)) continue;
      for (const Epoch& epoch : seed.run.data->epochs) {
        std::vector<std::string> row;
        add_coordinates(row, results, point.point, dimensions);
        row.insert(row.end(), {std::to_string(seed.seed), std::to_string(epoch.epoch)});
        for (const auto& column : kEpochFields) row.push_back(plain_number(epoch.*column.second));
        table.rows.push_back(std::move(row));
      }
    }
  }
  return table;
}

std::string json_text(const Results& results) {
  const Study& study = results.plan.study;
  Json json{{"study", study.name}, {"title", study.title}, {"question", study.question}, {"points", Json::array()}};
  for (const PointResult& point : results.points) {
    const Point& planned = results.plan.points[point.point];
    Json entry{{"label", planned.label},
               {"settings", Json::object()},
               {"against", results.plan.points[point.baseline].label},
               {"shown", std::ranges::find(results.shown, point.point) != results.shown.end()},
               {"measures", Json::object()},
               {"runs", Json::array()}};
    for (const auto& [name, value] : planned.settings) entry["settings"][name] = value;
    for (std::size_t k = 0; k < results.measures.size(); ++k) {
      const Sample& sample = point.samples[k];
      const Difference difference = difference_of(sample, results.points[point.baseline].samples[k]);
      Json values = Json::array();
      for (const SeedResult& seed : point.seeds) values.push_back(number_or_null(seed.values[k]));
      entry["measures"][std::string(results.measures[k]->name)] = {
          {"values", values},
          {"count", sample.count},
          {"mean", number_or_null(sample.mean)},
          {"standard_deviation", number_or_null(sample.deviation)},
          {"half_width_95", number_or_null(sample.half_width)},
          {"difference", number_or_null(difference.mean)},
          {"difference_low_95", number_or_null(difference.low)},
          {"difference_high_95", number_or_null(difference.high)}};
    }
    for (const SeedResult& seed : point.seeds)
      entry["runs"].push_back({{"seed", seed.seed},
                               {"outcome", name_of(seed.run.outcome)},
                               {"folder", seed.run.folder},
                               {"reason", seed.run.reason}});
    json["points"].push_back(std::move(entry));
  }
  json["reading"] = reading_of(results);
  json["not_finished"] = failures_of(results);
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

void write_tables(const Results& results, const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  require(!error, "{}: cannot be made: {}", folder, error.message());
  const Table table = table_of(results);
  const auto write = [&](const char* name, const std::string& text) {
    layers::write_file((std::filesystem::path(folder) / name).string(), text);
  };
  write("runs.csv", csv(runs_table(results)));
  write("epochs.csv", csv(epochs_table(results)));
  write("results.json", json_text(results));
  const std::string note = note_of_best(results.plan.study);
  write("table.md", markdown(table) + (note.empty() ? "" : "\n" + note + "\n"));
  write("table.tex", latex(table) + (note.empty() ? "" : "\n\\smallskip\n{\\footnotesize " + latex_text(note) + "}\n"));
}

}  // namespace tandem::study
