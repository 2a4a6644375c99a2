// Studies one below the other: question, reading, table, pictures, and what they were made from.
#include "apps/study/page.h"

#include "apps/study/charts.h"
#include "apps/study/reading.h"
#include "apps/study/tables.h"
#include "tandem/train/report/page.h"
#include "tandem/train/shell_word.h"

#include <fmt/format.h>

#include <algorithm>

namespace tandem::study {
namespace {

using train::report::begin_card;
using train::report::HtmlWriter;

constexpr std::string_view kStyle = R"css(
ul.contents { columns: 2 320px; list-style: none; margin: 0; padding: 14px 22px; } .contents li { break-inside: avoid; padding: 2px 0; }
a { color: var(--accent); text-decoration: none; } a:hover { text-decoration: underline; }
.question { font-size: 16px; margin-bottom: 14px; }
.reading ul { margin: 0; padding-left: 20px; } .reading li { margin: 0 0 6px; max-width: 90ch; } .reading li:last-child { margin-bottom: 0; }
section > .card, section > .grid, section > details, section > .verdict, section > .banner { margin-top: 18px; }
details > summary { cursor: pointer; color: var(--muted); font-size: 14px; } details[open] > summary { margin-bottom: 10px; }
@media screen { td, th { white-space: nowrap; } }
@media screen and (max-width: 720px) { .stack td:first-child[data-name]::before { content: attr(data-name) "\00a0\00a0"; font-weight: 400; } }
@media print { details { display: none; } .question, .banner { break-after: avoid; } .banner { break-inside: avoid; } .verdict.reading { break-inside: auto; } }
)css";

std::string heading_of(const Study& study) {
  return study.number > 0 ? fmt::format("{}. {}", study.number, study.title) : study.title;
}

void add_list(HtmlWriter& html, const std::vector<std::string>& sentences) {
  html.open("ul");
  for (const std::string& sentence : sentences) html.element("li", sentence);
  html.close();
}

void add_table(HtmlWriter& html, const Table& table) {
  html.open("table", {{"class", "stack"}});
  html.open("tr");
  const auto kind_of = [&](std::size_t column) { return std::string(table.are_numbers[column] ? "n" : "word"); };
  for (std::size_t i = 0; i < table.names.size(); ++i) html.element("th", table.names[i], {{"class", kind_of(i)}});
  html.close();
  for (const auto& row : table.rows) {
    html.open("tr");
    for (std::size_t i = 0; i < row.size(); ++i)
      html.element("td", row[i], {{"class", kind_of(i)}, {"data-name", table.names[i]}});
    html.close();
  }
  html.close();
}

void begin_details(HtmlWriter& html, const std::string& summary) {
  html.open("details", {{"class", "card"}});
  html.element("summary", summary);
}

void add_pictures(HtmlWriter& html, const Results& results) {
  html.open("div", {{"class", "grid"}});
  for (const Plot& plot : results.plan.study.plots) {
    begin_card(html);
    std::string title = title_of(plot);
    title[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(title[0])));
    html.element("h3", title);
    if (const std::string names = bar_names(results, plot); !names.empty())
      html.element("p", names, {{"class", "note"}, {"style", "margin: -6px 0 8px"}});
    html.markup(picture_of(results, plot));
    html.close();
  }
  html.close();
}

/// What all points have, and how a run is started by hand.
void add_settings(HtmlWriter& html, const Results& results) {
  const Plan& plan = results.plan;
  train::report::TextTable common;
  for (const auto& [name, value] : plan.points.front().settings) {
    const bool is_common =
        std::ranges::all_of(plan.points, [&](const Point& point) { return value_of(point.settings, name) == value; });
    if (is_common) common.emplace_back(name, value);
  }
  begin_details(html, "Settings of all runs, and the command line of one");
  train::report::add_pairs(html, common);
  std::string command;
  for (const std::string& word : command_of(plan.study.program, plan.study, plan.points.front(), 1))
    command += (command.empty() ? "" : " ") + train::shell_word(word);
  html.element("pre", command, {{"style", "margin-top: 12px"}});
  html.close();
}

void add_runs(HtmlWriter& html, const Results& results) {
  begin_details(html, "Runs");
  html.open("div", {{"class", "scroll"}});
  const Table all = runs_table(results);
  Table table;
  for (std::size_t i = 0; i < all.names.size() && all.names[i] != "reason"; ++i) {
    table.names.push_back(all.names[i]);
    table.are_numbers.push_back(all.are_numbers[i]);
  }
  for (const auto& row : all.rows)
    table.rows.emplace_back(row.begin(), row.begin() + static_cast<std::ptrdiff_t>(table.names.size()));
  add_table(html, table);
  html.close();
  html.close();
}

/// Where runs were gone on with: their times are sums over parts.
std::size_t resumed_runs(const Results& results) {
  std::size_t count = 0;
  for (const PointResult& point : results.points)
    for (const SeedResult& seed : point.seeds) count += seed.run.data && seed.run.data->sessions > 1 ? 1 : 0;
  return count;
}

void add_study(HtmlWriter& html, const Results& results, bool is_alone) {
  const Study& study = results.plan.study;
  html.open("section", {{"id", study.name}});
  if (!is_alone) html.element("h2", heading_of(study));
  if (!study.question.empty()) html.element("p", study.question, {{"class", "question"}});
  if (const auto failures = failures_of(results); !failures.empty()) {
    html.open("div", {{"class", "banner reading"}});
    html.element("p", "Not all runs are finished:");
    add_list(html, failures);
    html.close();
  }
  html.open("div", {{"class", "verdict reading"}});
  html.element("strong", "What the numbers say");
  add_list(html, reading_of(results));
  html.close();
  if (!study.note.empty()) html.element("p", study.note, {{"class", "note"}});
  html.open("div", {{"class", "card scroll"}});
  add_table(html, table_of(results));
  html.close();
  if (const std::string note = note_of_best(study); !note.empty()) html.element("p", note, {{"class", "note"}});
  if (const std::size_t count = resumed_runs(results); count > 0)
    html.element("p",
                 fmt::format("{} of the runs went on after an interruption: their time is that of all parts.", count),
                 {{"class", "note"}});
  add_pictures(html, results);
  if (const Table differences = differences_of(results); !differences.rows.empty()) {
    begin_details(html, "Differences, with their intervals");
    html.open("div", {{"class", "scroll"}});
    add_table(html, differences);
    html.close();
    html.close();
  }
  add_settings(html, results);
  add_runs(html, results);
  html.close();
}

/// Data set, device and date of the first run that tells.
std::string machine_of(const std::vector<Results>& studies) {
  for (const Results& results : studies)
    for (const PointResult& point : results.points)
      for (const SeedResult& seed : point.seeds)
        if (seed.run.data && !seed.run.data->device.empty()) {
          const auto& run = *seed.run.data;
          return fmt::format("{}, {}, {}", run.dataset, run.device, run.started.substr(0, 10));
        }
  return "no run is done yet";
}

}  // namespace

std::string study_page(const std::vector<Results>& studies) {
  const std::string title = studies.size() == 1 ? studies.front().plan.study.title : "Study of distributed training";
  HtmlWriter html;
  train::report::begin_page(html, title, kStyle);
  html.open("header");
  html.element("h1", title);
  html.element("div", machine_of(studies), {{"class", "sub"}});
  html.close();
  if (studies.size() > 1) {
    html.open("ul", {{"class", "card contents"}});
    for (const Results& results : studies) {
      html.open("li");
      html.element("a", heading_of(results.plan.study), {{"href", "#" + results.plan.study.name}});
      html.close();
    }
    html.close();
  }
  for (const Results& results : studies) add_study(html, results, studies.size() == 1);
  html.element(
      "p",
      "Figures are means over seeds, with one standard deviation behind \xC2\xB1. A difference is called clear "
      "where its 95 % interval by Welch's t-test over seeds leaves out zero, and else within the noise: of "
      "twenty differences that are none, one is called clear by chance. One seed has no spread, so that it "
      "tells no difference for sure.",
      {{"class", "note"}});
  return train::report::end_page(html, "Made by Tandem from the files of run directories; docs/study.md says how.");
}

}  // namespace tandem::study
