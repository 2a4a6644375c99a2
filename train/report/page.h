// What the pages have in common.
#pragma once

#include "tandem/train/plot/canvas.h"
#include "tandem/train/plot/line_chart.h"
#include "tandem/train/report/html_writer.h"
#include "tandem/train/report/run_data.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace tandem::train::report {

/// What the browser may run: nothing, whatever the files of a run hold, or what the page itself has.
enum class Scripts : std::uint8_t { none, of_this_page };

/// Begins a page, down to the first thing in its <main>; end_page() ends it and gives it. `style`: of this page alone,
/// behind what all have.
void begin_page(HtmlWriter& html, const std::string& title, std::string_view style = "",
                Scripts scripts = Scripts::none);
std::string end_page(HtmlWriter& html, std::string_view foot =
                                           "Made by Tandem from the files of the run directory; docs/report.md says "
                                           "what each part means.");

void begin_card(HtmlWriter& html, const char* kind = "card");

/// What charts are drawn in: not much wider than a telephone, where text must be read, too.
inline constexpr double kChartWidth = 400.0;

/// A chart in a card of its own.
void add_chart(HtmlWriter& html, const plot::LineChart& chart);

/// Names and values in columns.
void add_pairs(HtmlWriter& html, const TextTable& table);

/// What could not be read, if anything.
void add_problems(HtmlWriter& html, const std::vector<std::string>& problems);

}  // namespace tandem::train::report
