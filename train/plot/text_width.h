// How wide text is, without a font: an estimate by the widths of Helvetica's letters, which others are within 15 % of.
#pragma once

#include <string>
#include <string_view>

namespace tandem::train::plot {

/// In points, of one line.
double text_width(std::string_view text, double size);

/// `text`, or as much of its beginning as fits in `width` behind which there is "…".
std::string cut_to_width(std::string_view text, double size, double width);

}  // namespace tandem::train::plot
