// Where the time of a step goes.
#include "apps/sgd_lab/page_parts.h"
#include "tandem/train/report/page.h"
#include "tandem/train/report/step_parts.h"

#include <fmt/format.h>

#include <algorithm>

namespace tandem::sgd_lab {

namespace {

void add_way(HtmlWriter& html, const std::string& title, const ExchangeWay& way, double end) {
  train::report::StepTrace step = way.picture;
  step.end = end;
  train::report::begin_card(html, "card step");
  html.element("h3", title);
  train::report::add_step_picture(html, step);
  html.close();
}

}  // namespace

void add_time(HtmlWriter& html, const Lesson& lesson) {
  const TimedSteps& timed = lesson.timed.front();
  html.element("h2", "6. Where the time goes");
  for (const std::string& text : time_paragraphs(lesson)) html.element("p", text);
  const double end = std::max(timed.behind.picture.end, timed.beside.picture.end);  // one scale for both
  add_way(html, "Behind the backward pass: all gradients are one bucket", timed.behind, end);
  add_way(html,
          fmt::format("Beside it: {} buckets, each exchanged as soon as it is full", timed.beside.bucket_bytes.size()),
          timed.beside, end);
  add_table(html, time_table(timed));
}

}  // namespace tandem::sgd_lab
