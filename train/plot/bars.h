// Bars: one for each name, or stacked along an axis.
#pragma once

#include "tandem/train/plot/frame.h"

#include <string>
#include <vector>

namespace tandem::train::plot {

struct Bar {
  std::string name;
  double value = 0.0;  ///< not finite or below 0: no bar
  std::string text;    ///< behind it
  /// Of a thin line that shows how far the value varies; drawn where it is above 0.
  double deviation = 0.0;
};

/// From the left, one below the other, with names on the left and texts behind them. `most`: the value of the longest
/// bar that there is room for; 0: the largest value.
struct BarChart {
  std::vector<Bar> bars;
  Colour colour;
  double most = 0.0;
};

/// The height that the chart takes.
double height_of(const BarChart& chart);
void draw_bar_chart(Canvas& canvas, const Box& box, const BarChart& chart);

/// Columns at x, x + 1, ..., each the sum of a part of each layer. Figures that are not finite or below 0 count as 0.
/// Of more columns than there is room for, neighbours are drawn as one with their mean.
struct StackedChart {
  struct Layer {
    std::string name;
    Colour colour;
    std::vector<double> values;  ///< as many in each layer
  };
  Axis x;
  Axis y;
  double first = 1.0;  ///< x of the first column
  std::vector<Layer> layers;
};

void draw_stacked_chart(Canvas& canvas, const Box& box, const StackedChart& chart);

}  // namespace tandem::train::plot
