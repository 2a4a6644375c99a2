// The parts of a run's page. Each writes nothing where its figures are missing.
#pragma once

#include "tandem/train/report/html_writer.h"
#include "tandem/train/report/run_data.h"

namespace tandem::train::report {

void add_summary(HtmlWriter& html, const RunData& run);
void add_verdict(HtmlWriter& html, const RunData& run);
void add_curves(HtmlWriter& html, const RunData& run);
void add_evaluation(HtmlWriter& html, const RunData& run);
void add_worst_images(HtmlWriter& html, const RunData& run);
void add_filters(HtmlWriter& html, const RunData& run);
void add_performance(HtmlWriter& html, const RunData& run);
void add_scaling(HtmlWriter& html, const RunData& run);
void add_layers(HtmlWriter& html, const RunData& run);
void add_profile(HtmlWriter& html, const RunData& run);
void add_circumstances(HtmlWriter& html, const RunData& run);

}  // namespace tandem::train::report
