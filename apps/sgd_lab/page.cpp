#include "apps/sgd_lab/page.h"

#include "apps/sgd_lab/page_parts.h"
#include "tandem/train/report/page.h"
#include "tandem/train/report/step_parts.h"

#include <fmt/format.h>

namespace tandem::sgd_lab {

void add_note(HtmlWriter& html, const std::string& text) { html.element("p", text, {{"class", "note"}}); }

void add_table(HtmlWriter& html, const Table& table) {
  train::report::begin_card(html, "card scroll");
  html.open("table", {{"class", "stack"}});
  html.open("tr");
  for (std::size_t i = 0; i < table.columns.size(); ++i)
    html.element("th", table.columns[i], {{"class", i == 0 ? "" : "n"}});
  html.close();
  for (const Row& row : table.rows) {
    html.open("tr");
    html.element("td", row[0], {{"class", "name"}});
    for (std::size_t i = 1; i < row.size(); ++i)
      html.element("td", row[i], {{"class", "n"}, {"data-name", table.columns[i]}});
    html.close();
  }
  html.close();
  add_note(html, table.note);
  html.close();
}

std::string name_of_rank(std::size_t rank) { return fmt::format("rank {}", rank); }

namespace {

void add_script(HtmlWriter& html, const Lesson& lesson, const SpeedGrid& grid) {
  html.open("script");
  if (lesson.options.shows(Chapter::ring)) html.markup(ring_script());
  if (lesson.options.shows(Chapter::speed_up)) {
    html.markup(slider_data(lesson, grid));
    html.markup(slider_script());
  }
  html.markup(exercise_script());
  html.close();
}

}  // namespace

std::string lesson_page(const Lesson& lesson, const SpeedGrid& grid) {
  const LabOptions& options = lesson.options;
  HtmlWriter html;
  train::report::begin_page(html, "Synchronous SGD, step by step",
                            fmt::format("{}{}", train::report::step_style(), page_style()),
                            train::report::Scripts::of_this_page);
  html.open("header");
  html.element("h1", "Synchronous SGD, step by step");
  html.element("p",
               fmt::format("{} ranks, {} steps, batches of {} examples a rank, learning rate {}, momentum {}, seed {}",
                           options.ranks, options.steps, kBatchPerRank, kLearningRate, kMomentum, options.seed),
               {{"class", "sub"}});
  html.close();
  if (options.shows(Chapter::step)) add_step(html, lesson);
  if (options.shows(Chapter::ring)) add_ring(html, lesson.ring);
  if (options.shows(Chapter::time)) add_time(html, lesson);
  if (options.shows(Chapter::speed_up)) add_speed_up(html, lesson, grid);
  if (options.shows(Chapter::batch_size)) add_batch_sizes(html, lesson);
  if (options.shows(Chapter::broken)) add_broken_runs(html, lesson);
  add_exercises(html, lesson);
  add_script(html, lesson, grid);
  return train::report::end_page(html, "Made by sgd_lab; docs/synchronous-sgd.md goes through it.");
}

}  // namespace tandem::sgd_lab
