// The chapters of the page, and what they have in common.
#pragma once

#include "apps/sgd_lab/lesson.h"
#include "apps/sgd_lab/tables.h"
#include "tandem/train/report/html_writer.h"

#include <cstddef>
#include <string>

namespace tandem::sgd_lab {

using train::report::HtmlWriter;

void add_note(HtmlWriter& html, const std::string& text);

/// A card with a table, which narrow windows show line by line.
void add_table(HtmlWriter& html, const Table& table);

std::string name_of_rank(std::size_t rank);

void add_step(HtmlWriter& html, const Lesson& lesson);
void add_ring(HtmlWriter& html, const RingLesson& ring);
void add_time(HtmlWriter& html, const Lesson& lesson);
void add_speed_up(HtmlWriter& html, const Lesson& lesson, const SpeedGrid& grid);
void add_batch_sizes(HtmlWriter& html, const Lesson& lesson);
void add_broken_runs(HtmlWriter& html, const Lesson& lesson);
void add_exercises(HtmlWriter& html, const Lesson& lesson);

/// Figures of the sliders, for the page's script.
std::string slider_data(const Lesson& lesson, const SpeedGrid& grid);

}  // namespace tandem::sgd_lab
