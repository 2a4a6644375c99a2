// What pages with pictures of steps have in common.
#pragma once

#include "tandem/train/plot/canvas.h"
#include "tandem/train/report/html_writer.h"
#include "tandem/train/report/read_step.h"

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tandem::train::report {

/// For the style of a page with such pictures.
std::string_view step_style();

/// On a canvas of some width.
using DrawOfWidth = std::function<void(plot::Canvas&, double)>;

/// Drawn twice, for wide windows and for telephones, of which one is shown.
void add_picture(HtmlWriter& html, const std::string& description, double height, const DrawOfWidth& draw);

/// Colours of colour_of(), each with what it stands for.
void add_keys(HtmlWriter& html, const std::vector<std::pair<std::string, std::string>>& keys);

/// The rows of draw_step(), and what the colours of its phases are.
void add_step_picture(HtmlWriter& html, const StepTrace& step);

}  // namespace tandem::train::report
