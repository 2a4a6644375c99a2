// A table of shares as shades, and a grid of small pictures.
#pragma once

#include "tandem/train/plot/canvas.h"

#include <cstdint>
#include <string>
#include <vector>

namespace tandem::train::plot {

/// A square table with the same names for rows and columns: `count[row][column]`. The shade of a cell is its share of
/// its row; cells on the diagonal have another colour than those beside it. Counts and names are written where they
/// fit.
struct HeatMap {
  std::vector<std::string> names;
  std::vector<std::vector<std::int64_t>> counts;
  std::string rows, columns;  ///< what they are
};

/// The chart is as wide as the box, and takes this height.
double height_of(const HeatMap& map, double width);
void draw_heat_map(Canvas& canvas, const Box& box, const HeatMap& map);

/// Small pictures, row-major with 1 or 3 channels behind each other ([channels, height, width]), values 0 to 1.
struct PixelGrid {
  std::int64_t channels = 1, height = 1, width = 1;
  std::vector<std::vector<double>> pictures;
  int per_row = 8;
};

double height_of(const PixelGrid& grid, double width);
void draw_pixel_grid(Canvas& canvas, const Box& box, const PixelGrid& grid);

}  // namespace tandem::train::plot
