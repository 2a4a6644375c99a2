// Larger batches.
#include "apps/sgd_lab/charts.h"
#include "apps/sgd_lab/page_parts.h"
#include "tandem/train/report/page.h"

#include <fmt/format.h>

namespace tandem::sgd_lab {

void add_batch_sizes(HtmlWriter& html, const Lesson& lesson) {
  const BatchLesson& batches = lesson.batches;
  html.element("h2", "8. Larger batches");
  html.element("p",
               "N ranks have N times the batch of one, or the batch of one in N parts. A larger batch costs fewer "
               "exchanges for as many examples, and gives fewer updates. " +
                   examples_text(batches));
  html.open("div", {{"class", "grid"}});
  train::report::add_chart(html, batch_chart("Loss, all by one learning rate", batches.same));
  train::report::add_chart(html, batch_chart("Loss, the learning rate scaled as the batch", batches.scaled));
  html.close();
  add_table(html, batch_table(batches));
}

}  // namespace tandem::sgd_lab
