// Texts around the pictures, and the table.
#include "tandem/train/report/step_page.h"

#include "tandem/train/report/page.h"
#include "tandem/train/report/step_drawing.h"
#include "tandem/train/report/step_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace tandem::train::report {

namespace {

double sum_of(const std::vector<StepSpan>& spans, std::initializer_list<std::string_view> names) {
  double sum = 0.0;
  for (const StepSpan& span : spans)
    if (span.depth == 0 && std::ranges::find(names, span.name) != names.end()) sum += span.end - span.begin;
  return sum;
}

/// Milliseconds in which at least one of the rank's buckets was under way.
double exchange_time(const StepOfRank& rank) {
  std::vector<std::pair<double, double>> buckets;
  for (const StepRow& row : rank.rows)
    if (row.name.starts_with("buckets"))
      for (const StepSpan& span : row.spans) buckets.emplace_back(span.begin, span.end);
  std::ranges::sort(buckets);
  double sum = 0.0, until = -1e300;
  for (const auto& [begin, end] : buckets) {
    sum += std::max(0.0, end - std::max(begin, until));
    until = std::max(until, end);
  }
  return sum;
}

void add_table(HtmlWriter& html, const StepTrace& step) {
  constexpr const char* kColumns[] = {"step", "computes", "waits for others", "exchange", "hidden"};
  html.open("div", {{"class", "card scroll"}});
  html.element("h3", "Where the time went, in ms");
  html.open("table", {{"class", "stack"}});
  html.open("tr");
  html.element("th", "rank");
  for (const char* const name : kColumns) html.element("th", name, {{"class", "n"}});
  html.close();
  for (const StepOfRank& rank : step.ranks) {
    const double waits = sum_of(rank.work, {"communication"}), exchange = exchange_time(rank);
    const double computes = sum_of(rank.work, {"data", "forward", "backward", "optimizer"});
    const double hidden = exchange > 0.0 ? std::clamp(1.0 - waits / exchange, 0.0, 1.0) : 0.0;
    const std::string cells[] = {fmt::format("{:.3f}", rank.end - rank.begin), fmt::format("{:.3f}", computes),
                                 fmt::format("{:.3f}", waits), fmt::format("{:.3f}", exchange),
                                 exchange > 0.0 ? fmt::format("{:.0f} %", 100.0 * hidden) : "\xE2\x80\x93"};
    html.open("tr");
    html.element("td", fmt::format("rank {}", rank.rank), {{"class", "name"}});
    for (std::size_t column = 0; column < std::size(cells); ++column)
      html.element("td", cells[column], {{"class", "n"}, {"data-name", kColumns[column]}});
    html.close();
  }
  html.close();
  html.element("p",
               "Computes: data, forward, backward and optimizer. Exchange: from when the first bucket of gradients is "
               "full until the last one is averaged, without pauses. Hidden: the part of it beside which the rank "
               "computed.",
               {{"class", "note"}});
  html.close();
}

void add_step(HtmlWriter& html, const StepTrace& step) {
  begin_card(html);
  html.element("h3", "The step on each rank");
  add_step_picture(html, step);
  if (step.ranks.size() > kMostRanksDrawn)
    html.element("p", fmt::format("Drawn are {} of {} ranks; the trace has all.", kMostRanksDrawn, step.ranks.size()),
                 {{"class", "note"}});
  html.close();
}

void add_exchange(HtmlWriter& html, const StepTrace& step) {
  const Exchange exchange = largest_exchange(step);
  if (exchange.number < 0) return;
  begin_card(html);
  html.element("h3", fmt::format("Its largest exchange: {} by {}", exchange.name, exchange.algorithm));
  add_picture(html, "The steps of one exchange between ranks on each of them", height_of_exchange(step, exchange),
              [&](plot::Canvas& canvas, double width) { draw_exchange(canvas, step, exchange, width); });
  add_keys(html, {{"wait", "waits"}, {"copy", "copies"}, {"combine", "combines"}, {"send", "is being sent"}});
  html.element(
      "p",
      "Shown is the time from shortly before the last rank joined until shortly behind the last copy. Lines join "
      "the beginning of a message with its arrival. "
      "Pointing at a bar tells what it is.",
      {{"class", "note"}});
  html.close();
}

std::string title_of(const StepTrace& step) {
  std::string name = step.name;
  name[0] = 'S';
  return fmt::format("{} on {} rank{}", name, step.ranks.size(), step.ranks.size() == 1 ? "" : "s");
}

std::string circumstances_of(const StepTrace& step) {
  double uncertainty = 0.0;
  for (const StepOfRank& rank : step.ranks) uncertainty = std::max(uncertainty, rank.uncertainty);
  std::string text = fmt::format("{:.3f} ms", step.end);
  if (step.recorded > 1)
    text += fmt::format("; of {} recorded steps the one that took the median time on rank 0", step.recorded);
  if (step.ranks.size() > 1)
    text += fmt::format(". Clocks of the ranks agree within {:.1f} \xC2\xB5s", 1e3 * uncertainty);
  return text + ".";
}

}  // namespace

std::string step_page(std::string_view trace) {
  const std::optional<StepTrace> step = read_step(trace);
  if (!step) return "";
  HtmlWriter html;
  begin_page(html, title_of(*step), step_style());
  html.open("header");
  html.element("h1", title_of(*step));
  html.element("p", circumstances_of(*step), {{"class", "sub"}});
  html.close();
  html.open("div", {{"class", "grid"}});
  html.open("div", {{"class", "wide"}});
  add_step(html, *step);
  html.close();
  html.open("div", {{"class", "wide"}});
  add_exchange(html, *step);
  html.close();
  html.open("div", {{"class", "wide"}});
  add_table(html, *step);
  html.close();
  html.close();
  return end_page(html, "Made by Tandem from the trace beside this page; docs/training.md says what each part means.");
}

}  // namespace tandem::train::report
