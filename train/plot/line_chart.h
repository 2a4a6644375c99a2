// Lines over a common axis, each named at its end.
#pragma once

#include "tandem/train/plot/frame.h"

#include <string>
#include <string_view>
#include <vector>

namespace tandem::train::plot {

/// Of x as it grows. A figure that is not finite, or that the axis cannot show, is a gap in the line; a figure between
/// two gaps is a dot.
struct Series {
  std::string name;  ///< empty: not named
  Colour colour;
  std::vector<double> x;
  std::vector<double> y;
  std::vector<double> low = {};  ///< of a band around the line, one for each x; or empty
  std::vector<double> high = {};
  bool faint = false;
  bool dashed = false;
};

/// x and y are taken as wide as the series need them, and wider where they have bounds.
struct LineChart {
  std::string title;
  Axis x;
  Axis y;
  std::vector<Series> series;
};

/// Names stand at the ends of their lines, one below the other; of more than 8 series, in rows below the title, and of
/// those of more than 24 the rest is counted.
void draw_line_chart(Canvas& canvas, const Box& box, const LineChart& chart);

/// What the names take above the lines in a chart of this width, in points; 0 where they stand at the lines' ends.
double height_of_names(const LineChart& chart, double width);

/// Whether a name is shown in full in a chart of so many series and this width, in points.
bool fits_beside_lines(std::string_view name, std::size_t series, double width);

struct LegendEntry {
  std::string name;
  Colour colour;
  bool dashed = false;
};

/// Squares of colours, or dashes, with names, in rows. Returns the height that they take.
double draw_legend(Canvas& canvas, const Box& box, const std::vector<LegendEntry>& entries);

}  // namespace tandem::train::plot
