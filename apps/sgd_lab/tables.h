// Tables of a lesson, for the text and for the page.
#pragma once

#include "apps/sgd_lab/lesson.h"

#include <string>
#include <vector>

namespace tandem::sgd_lab {

using Row = std::vector<std::string>;

struct Table {
  Row columns;
  std::vector<Row> rows;  ///< as wide as `columns`; the first cell is the row's name
  std::string note;
};

/// What steps take in each way, and what was predicted.
Table time_table(const TimedSteps& timed);
/// The same in sentences, with the small network's times.
std::vector<std::string> time_paragraphs(const Lesson& lesson);

/// What the speed-ups are of, and how far measured ones are from those that were predicted.
std::string speed_text(const Lesson& lesson);
Table speed_table(const Lesson& lesson);

Table batch_table(const BatchLesson& lesson);

/// In aligned columns.
std::string to_text(const Table& table);

}  // namespace tandem::sgd_lab
