// Runs without a part.
#include "apps/sgd_lab/charts.h"
#include "apps/sgd_lab/page_parts.h"
#include "apps/sgd_lab/text.h"
#include "tandem/train/report/page.h"

#include <fmt/format.h>

namespace tandem::sgd_lab {

namespace {

void add_broken(HtmlWriter& html, const Lesson& lesson, const BrokenRun& run) {
  html.element("h3", fmt::format("Left out: {}", run.left_out.name), {{"class", "part"}});
  html.element("p", run.left_out.what_breaks);
  html.open("p");
  html.element("strong", difference_text(run));
  html.text(fmt::format(" Different examples that were used: {} intact, {} broken.", lesson.examples_seen,
                        run.examples_seen));
  html.close();
  html.open("div", {{"class", "grid"}});
  train::report::add_chart(html, loss_chart(lesson, run));
  train::report::add_chart(html, distance_chart(lesson, run));
  html.close();
}

}  // namespace

void add_broken_runs(HtmlWriter& html, const Lesson& lesson) {
  html.element("h2", "9. What breaks when a part is left out");
  html.element("p", "Each part is left out of one more run, from the same seed.");
  for (const BrokenRun& run : lesson.broken) add_broken(html, lesson, run);
}

}  // namespace tandem::sgd_lab
